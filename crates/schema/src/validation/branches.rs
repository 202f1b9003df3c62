//! The errors of a value that matches none of several branches.
//!
//! Listing every error of every branch would hide the one that matters: only the intended branch is
//! explained.

use jsonschema::{ValidationError, error::ValidationErrorKind as Kind};

use super::message::{MessageCollector, NO_FORM, path_of, text_sent, types_of};
use crate::text::{joined, text_of};

type Branches = [Vec<ValidationError<'static>>];

impl MessageCollector<'_> {
    /// Explains why a value does not match the intended branch; if the intention is unclear, adds
    /// one message about all branches.
    pub(super) fn add_closest_branch(&mut self, path: &str, branches: &Branches) {
        let tag = tag_of(branches, path);
        let is_intended = |errors: &&Vec<ValidationError<'_>>| {
            let is_of_another_type = errors.iter().any(|it| types_expected(it, path).is_some());
            let has_another_tag = tag.as_ref().is_some_and(|it| it.mismatches(errors, path));
            !is_of_another_type && !has_another_tag
        };
        let mut intended = branches.iter().filter(is_intended);
        if let (Some(only), None) = (intended.next(), intended.next()) {
            for error in only {
                self.add(error);
            }
            return;
        }
        if let Some(name) = required_by_all(branches, path) {
            return self.put(joined(path, name), "Is required".into());
        }
        if let Some(tag) = tag
            && branches.iter().all(|it| tag.mismatches(it, path))
        {
            let values = tag.values.join(", ");
            return self.put(tag.path, format!("Must be one of: {values}"));
        }
        let message = type_message(branches, path);
        self.put(path.to_owned(), message.unwrap_or_else(|| NO_FORM.into()));
    }
}

/// Returns a property that every branch requires and the value lacks: usually the tag itself.
fn required_by_all<'a>(branches: &'a Branches, path: &str) -> Option<&'a str> {
    let required = |errors: &'a Vec<ValidationError<'_>>| {
        let errors = errors.iter();
        let at_path = errors.filter(|error| path_of(error.instance_path()) == path);
        at_path.filter_map(|error| match error.kind() {
            Kind::Required { property } => property.as_str(),
            _ => None,
        })
    };
    let (first, others) = branches.split_first()?;
    required(first).find(|name| {
        let mut others = others.iter();
        others.all(|errors| required(errors).any(|it| it == *name))
    })
}

/// The place whose constant distinguishes the branches.
struct Tag {
    path: String,
    values: Vec<String>,
}

impl Tag {
    fn is_at(&self, error: &ValidationError<'_>) -> bool {
        path_of(error.instance_path()) == self.path
    }

    /// Returns true if the value does not have the constant that a branch requires there.
    fn mismatches(&self, errors: &[ValidationError<'_>], path: &str) -> bool {
        let mut errors = errors.iter();
        errors.any(|error| constants(error, path).is_some() && self.is_at(error))
    }
}

/// Returns the place where most branches require a constant, which is the tag.
fn tag_of(branches: &Branches, path: &str) -> Option<Tag> {
    let mut tags: Vec<Tag> = Vec::new();
    for error in branches.iter().flatten() {
        let Some(mut values) = constants(error, path) else {
            continue;
        };
        match tags.iter_mut().find(|tag| tag.is_at(error)) {
            Some(tag) => tag.values.append(&mut values),
            None => tags.push(Tag {
                path: path_of(error.instance_path()),
                values,
            }),
        }
    }
    let most = tags.into_iter().max_by_key(|tag| tag.values.len())?;
    let mismatching = branches.iter().filter(|it| most.mismatches(it, path));
    // If the value has the constant of the intended branch, all other branches mismatch.
    (mismatching.count() + 1 >= branches.len()).then_some(most)
}

/// Returns the constants that the error expects, if it is about any. An enum inside a branch is a
/// rule of that branch and does not distinguish the branches.
fn constants(error: &ValidationError<'_>, path: &str) -> Option<Vec<String>> {
    match error.kind() {
        Kind::Constant { expected_value } => Some(vec![text_of(expected_value)]),
        Kind::Enum { options } if path_of(error.instance_path()) == path => {
            Some(options.as_array()?.iter().map(text_of).collect())
        }
        _ => None,
    }
}

/// Returns the types that the error expects of the value itself, if it is about them.
fn types_expected(error: &ValidationError<'_>, path: &str) -> Option<Vec<&'static str>> {
    match error.kind() {
        Kind::Type { kind } if path_of(error.instance_path()) == path => Some(types_of(kind)),
        _ => None,
    }
}

/// Returns a message about the types that the branches require, if every branch fails only because
/// of its type.
fn type_message(branches: &Branches, path: &str) -> Option<String> {
    let of_branch = |errors: &Vec<ValidationError<'_>>| match errors.as_slice() {
        [only] => types_expected(only, path),
        _ => None,
    };
    let types: Option<Vec<_>> = branches.iter().map(of_branch).collect();
    let mut types = types?.concat();
    types.dedup();
    let sent = text_sent(branches.first()?.first()?.instance());
    Some(format!("Must be {}{sent}", types.join(" or ")))
}
