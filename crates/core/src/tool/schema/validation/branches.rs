//! The errors of a value that matches none of several branches.
//!
//! Listing every error of every branch would hide the one that matters: only the intended branch is
//! explained.

use jsonschema::{ValidationError, error::ValidationErrorKind as Kind};

use super::message::{PartMessages, path_of, plain, text_sent, types_of};
use crate::text::joined;

type Branches = [Vec<ValidationError<'static>>];

impl PartMessages<'_> {
    /// Explains why a value does not match the intended branch; if the intention is unclear, adds
    /// one message about all branches.
    pub(super) fn add_closest_branch(&mut self, path: &str, branches: &Branches) {
        let tag = tag_of(branches, path);
        let is_intended = |errors: &&Vec<ValidationError<'_>>| {
            let is_of_another_type = errors.iter().any(|error| is_wrong_type(error, path));
            let has_another_tag = tag.as_ref().is_some_and(|tag| {
                errors
                    .iter()
                    .any(|error| constants(error, path).is_some() && tag.is_at(error))
            });
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
        let (at, message) = match (tag, type_message(branches, path)) {
            (Some(tag), _) if tag.mismatches_all => (
                tag.path,
                format!("Must be one of: {}", tag.values.join(", ")),
            ),
            (_, Some(message)) => (path.to_owned(), message),
            _ => (
                path.to_owned(),
                "Must be one of the forms that the tool's definition describes".into(),
            ),
        };
        self.put(at, message);
    }
}

/// Returns a property that every branch requires and the value lacks: usually the tag itself.
fn required_by_all<'a>(branches: &'a Branches, path: &str) -> Option<&'a str> {
    let required = |errors: &'a Vec<ValidationError<'_>>| {
        let at_path = errors
            .iter()
            .filter(|error| path_of(error.instance_path()) == path);
        at_path.filter_map(|error| match error.kind() {
            Kind::Required { property } => property.as_str(),
            _ => None,
        })
    };
    let (first, others) = branches.split_first()?;
    required(first).find(|name| {
        others
            .iter()
            .all(|errors| required(errors).any(|it| it == *name))
    })
}

/// The place whose constant distinguishes the branches.
struct Tag {
    path: String,
    values: Vec<String>,
    /// True if the value has none of the constants that the branches require there.
    mismatches_all: bool,
}

impl Tag {
    fn is_at(&self, error: &ValidationError<'_>) -> bool {
        path_of(error.instance_path()) == self.path
    }
}

/// Returns the place where most branches require a constant, which is the tag.
fn tag_of(branches: &Branches, path: &str) -> Option<Tag> {
    let mut tags: Vec<Tag> = Vec::new();
    for errors in branches {
        for error in errors {
            let Some(mut values) = constants(error, path) else {
                continue;
            };
            match tags.iter_mut().find(|tag| tag.is_at(error)) {
                Some(tag) => tag.values.append(&mut values),
                None => tags.push(Tag {
                    path: path_of(error.instance_path()),
                    values,
                    mismatches_all: false,
                }),
            }
        }
    }
    let most = tags.into_iter().max_by_key(|tag| tag.values.len())?;
    let mismatches = |errors: &&Vec<ValidationError<'_>>| {
        errors
            .iter()
            .any(|error| constants(error, path).is_some() && most.is_at(error))
    };
    let count = branches.iter().filter(mismatches).count();
    // If the value has the constant of the intended branch, all other branches mismatch.
    let mismatches_all = count == branches.len();
    (mismatches_all || count + 1 == branches.len()).then_some(Tag {
        mismatches_all,
        ..most
    })
}

/// Returns the constants that the error expects, if it is about any. An enum inside a branch is a
/// rule of that branch and does not distinguish the branches.
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

/// Returns a message about the types that the branches require, if every branch fails only because
/// of its type.
fn type_message(branches: &Branches, path: &str) -> Option<String> {
    let of_branch = |errors: &Vec<ValidationError<'_>>| match errors.as_slice() {
        [error] if is_wrong_type(error, path) => match error.kind() {
            Kind::Type { kind } => Some(types_of(kind)),
            _ => None,
        },
        _ => None,
    };
    let types: Option<Vec<_>> = branches.iter().map(of_branch).collect();
    let mut types = types?.concat();
    types.dedup();
    let sent = text_sent(branches.first()?.first()?.instance());
    Some(format!("Must be {}{sent}", types.join(" or ")))
}
