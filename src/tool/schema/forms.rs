//! What is wrong with a value that fits none of several forms.
//!
//! Listing every error of every form would bury the one that matters: the form that was meant is
//! explained, the others are not.

use jsonschema::{ValidationError, error::ValidationErrorKind as Kind};

use super::{
    message::{PartMessages, path_of, plain, types_of},
    part::joined,
};

type Forms = [Vec<ValidationError<'static>>];

impl PartMessages<'_> {
    /// Says what keeps a value from the form that was meant; where none can be told, which forms
    /// there are.
    pub(super) fn add_closest_form(&mut self, path: &str, forms: &Forms) {
        let tag = tag_of(forms, path);
        let is_meant = |errors: &&Vec<ValidationError<'_>>| {
            let is_of_another_type = errors.iter().any(|error| is_wrong_type(error, path));
            let has_another_tag = tag.as_ref().is_some_and(|tag| {
                errors
                    .iter()
                    .any(|error| constants(error, path).is_some() && tag.is_at(error))
            });
            !is_of_another_type && !has_another_tag
        };
        let mut meant = forms.iter().filter(is_meant);
        if let (Some(only), None) = (meant.next(), meant.next()) {
            for error in only {
                self.add(error);
            }
            return;
        }
        if let Some(name) = required_by_all(forms, path) {
            return self.put(joined(path, name), "Is required".into());
        }
        let (at, message) = match (tag, types(forms, path)) {
            (Some(tag), _) if tag.of_all => (
                tag.path,
                format!("Must be one of: {}", tag.values.join(", ")),
            ),
            (_, Some(types)) => (path.to_owned(), format!("Must be {}", types.join(" or "))),
            _ => (
                path.to_owned(),
                "Must be one of the forms that the tool's definition describes".into(),
            ),
        };
        self.put(at, message);
    }
}

/// The property that every form requires and the value does not have: the tag itself, mostly.
fn required_by_all<'a>(forms: &'a Forms, path: &str) -> Option<&'a str> {
    let required = |errors: &'a Vec<ValidationError<'_>>| {
        let at_path = errors
            .iter()
            .filter(|error| path_of(error.instance_path()) == path);
        at_path.filter_map(|error| match error.kind() {
            Kind::Required { property } => property.as_str(),
            _ => None,
        })
    };
    let (first, others) = forms.split_first()?;
    required(first).find(|name| {
        others
            .iter()
            .all(|errors| required(errors).any(|it| it == *name))
    })
}

/// The place whose constant tells the forms apart.
struct Tag {
    path: String,
    values: Vec<String>,
    /// Whether every form wants another constant there than the value has.
    of_all: bool,
}

impl Tag {
    fn is_at(&self, error: &ValidationError<'_>) -> bool {
        path_of(error.instance_path()) == self.path
    }
}

/// A tag is where most forms want a constant.
fn tag_of(forms: &Forms, path: &str) -> Option<Tag> {
    let mut tags: Vec<Tag> = Vec::new();
    for errors in forms {
        for error in errors {
            let Some(mut values) = constants(error, path) else {
                continue;
            };
            match tags.iter_mut().find(|tag| tag.is_at(error)) {
                Some(tag) => tag.values.append(&mut values),
                None => tags.push(Tag {
                    path: path_of(error.instance_path()),
                    values,
                    of_all: false,
                }),
            }
        }
    }
    let most = tags.into_iter().max_by_key(|tag| tag.values.len())?;
    let wants = |errors: &&Vec<ValidationError<'_>>| {
        errors
            .iter()
            .any(|error| constants(error, path).is_some() && most.is_at(error))
    };
    let count = forms.iter().filter(wants).count();
    // With two forms, one of them meant, one constant is wrong.
    let of_all = count == forms.len();
    (of_all || count + 1 == forms.len()).then_some(Tag { of_all, ..most })
}

/// The constants that were wanted instead, as far as the error is about any. A choice of several
/// inside a form is a rule of that form, and tells no forms apart.
fn constants(error: &ValidationError<'_>, path: &str) -> Option<Vec<String>> {
    match error.kind() {
        Kind::Constant { expected_value } => Some(vec![plain(expected_value)]),
        Kind::Enum { options } if path_of(error.instance_path()) == path => {
            Some(options.as_array()?.iter().map(plain).collect())
        }
        _ => None,
    }
}

fn is_wrong_type(error: &ValidationError<'_>, path: &str) -> bool {
    matches!(error.kind(), Kind::Type { .. }) && path_of(error.instance_path()) == path
}

/// The types that the forms want, where they want nothing but another type.
fn types(forms: &Forms, path: &str) -> Option<Vec<&'static str>> {
    let of_form = |errors: &Vec<ValidationError<'_>>| match errors.as_slice() {
        [error] if is_wrong_type(error, path) => match error.kind() {
            Kind::Type { kind } => Some(types_of(kind)),
            _ => None,
        },
        _ => None,
    };
    let types: Option<Vec<_>> = forms.iter().map(of_form).collect();
    let mut types = types?.concat();
    types.dedup();
    Some(types)
}
