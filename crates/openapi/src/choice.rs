//! The choice of operations: nothing becomes a tool that nobody asked for.

use lambda_tools_schema::document::Document;
use serde_json::Value;

use crate::{OpenApiError, error::all_known, operation::Operation};

/// The operations that an owner chooses.
#[derive(Clone, Debug, Default)]
pub(crate) struct Choice {
    pub(crate) all: bool,
    pub(crate) tags: Vec<String>,
    pub(crate) operations: Vec<String>,
    pub(crate) paths: Vec<String>,
    pub(crate) methods: Vec<String>,
    pub(crate) excluded: Vec<String>,
}

impl Choice {
    /// Returns true if anything is chosen.
    pub(crate) fn is_made(&self) -> bool {
        self.all || self.names_operations() || !self.methods.is_empty()
    }

    fn names_operations(&self) -> bool {
        let lists = [&self.tags, &self.operations, &self.paths];
        lists.iter().any(|list| !list.is_empty())
    }

    /// Returns true if the operation is chosen: by a tag, its id or its path; methods narrow that.
    pub(crate) fn includes(&self, operation: &Operation, extension: Option<&Value>) -> bool {
        let mut tags = operation.tags();
        let has_tag = tags.any(|tag| self.tags.iter().any(|it| same(it, tag)));
        let is_named = self.operations.iter().any(|it| is(operation, it));
        let has_path = self.paths.iter().any(|glob| matches(glob, operation.path));
        let is_enabled = enabled(extension);
        let by_method = !self.methods.is_empty() && !self.names_operations();
        let is_chosen = self.all || has_tag || is_named || has_path || by_method;
        let mut methods = self.methods.iter();
        let has_method =
            self.methods.is_empty() || methods.any(|it| it.eq_ignore_ascii_case(operation.method));
        let is_excluded = self.excluded.iter().any(|it| is(operation, it));
        (is_chosen || is_enabled == Some(true))
            && has_method
            && !is_excluded
            && is_enabled != Some(false)
    }

    /// Checks that everything that is named exists: a misspelt tag would choose nothing.
    pub(crate) fn check(&self, operations: &[Operation]) -> Result<(), OpenApiError> {
        let has_tag = |tag: &&String| {
            let mut tags = operations.iter().flat_map(Operation::tags);
            tags.any(|it| same(it, tag))
        };
        let has_path = |glob: &&String| operations.iter().any(|it| matches(glob, it.path));
        let tags = operations.iter().flat_map(Operation::tags);
        let misspelt = self.tags.iter().filter(|it| !has_tag(it));
        all_known("tag", "--include-tag", misspelt, tags)?;
        let misspelt = self.paths.iter().filter(|it| !has_path(it));
        let paths = operations.iter().map(|it| it.path);
        all_known("path", "--include-path", misspelt, paths)?;
        check_operations("--include-operation", &self.operations, operations)?;
        check_operations("--exclude", &self.excluded, operations)
    }
}

/// Checks that the document has the operations that an option names.
pub(crate) fn check_operations<'a>(
    flag: &str,
    named: impl IntoIterator<Item = &'a String>,
    operations: &[Operation],
) -> Result<(), OpenApiError> {
    let labels: Vec<_> = operations.iter().map(Operation::label).collect();
    let ids = operations.iter().filter_map(Operation::id);
    let known = ids.chain(labels.iter().map(String::as_str));
    all_known("operation", flag, named, known)
}

/// Returns true for names of tags that differ only in case.
fn same(one: &str, other: &str) -> bool {
    one == other || one.to_lowercase() == other.to_lowercase()
}

/// Returns true if `name` is the operation's id, or its method and path.
pub(crate) fn is(operation: &Operation, name: &str) -> bool {
    operation.id() == Some(name) || operation.label() == name
}

/// Returns true if the text matches a pattern in which `*` is any text.
pub(crate) fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else {
        return false;
    };
    let Some(last) = parts.next_back() else {
        return rest.is_empty();
    };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// Returns whether the extension `x-mcp` chooses the operation.
fn enabled(extension: Option<&Value>) -> Option<bool> {
    match extension? {
        Value::Bool(is_enabled) => Some(*is_enabled),
        Value::Object(fields) => fields.get("enabled").map_or(Some(true), Value::as_bool),
        _ => None,
    }
}

/// Returns the groups of operations to choose from, with their sizes: tags, or the first segments of
/// the paths of operations without a tag.
pub(crate) fn groups(document: &Document) -> Vec<(String, usize)> {
    let mut groups: Vec<(String, usize)> = Vec::new();
    let mut count = |name: &str| match groups.iter_mut().find(|(it, _)| it == name) {
        Some((_, count)) => *count += 1,
        None => groups.push((name.to_owned(), 1)),
    };
    for operation in Operation::all(document) {
        let mut tags = operation.tags().peekable();
        if tags.peek().is_none() {
            let end = operation.path.get(1..).and_then(|it| it.find('/'));
            count(&operation.path[..end.map_or(operation.path.len(), |it| it + 1)]);
        }
        tags.for_each(&mut count);
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn stars_match_any_text() {
        for (pattern, text, does) in [
            ("/pets/*", "/pets/{id}/photos", true),
            ("/pets", "/pets/{id}", false),
            ("*/photos", "/pets/{id}/photos", true),
            ("/a*b*c", "/axbyc", true),
            ("/a*b*c", "/acb", false),
            ("*", "", true),
            ("a*a", "a", false),
        ] {
            assert_eq!(matches(pattern, text), does, "{pattern} {text}");
        }
    }
}
