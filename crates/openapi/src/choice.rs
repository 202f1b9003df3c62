//! The choice of operations: nothing becomes a tool that nobody asked for.

use lambda_tools_core::text::matches;
use lambda_tools_schema::document::Document;
use serde_json::Value;

use crate::{OpenApiError, OpenApiOptions, error::all_known, operation::Operation};

/// Returns true if anything is chosen.
pub(crate) fn is_made(options: &OpenApiOptions) -> bool {
    names_operations(options) || !options.include_methods.is_empty()
}

fn names_operations(options: &OpenApiOptions) -> bool {
    let lists = [
        &options.include_tags,
        &options.include_operations,
        &options.include_paths,
    ];
    lists.iter().any(|list| !list.is_empty())
}

/// Returns true if the operation is chosen: by a tag, its id or its path; methods narrow that.
pub(crate) fn includes(
    options: &OpenApiOptions,
    operation: &Operation,
    document: &Document,
) -> bool {
    let has_tag = |tag| options.include_tags.iter().any(|it| same(it, tag));
    let is_named = |list: &[String]| list.iter().any(|it| is(operation, it));
    let has_path = |glob: &String| matches(glob, operation.path);
    let is_enabled = enabled(operation, document);
    let by_method = !options.include_methods.is_empty() && !names_operations(options);
    let is_chosen = by_method
        || operation.tags().any(has_tag)
        || is_named(&options.include_operations)
        || options.include_paths.iter().any(has_path)
        || is_enabled == Some(true);
    let mut methods = options.include_methods.iter();
    let has_method = options.include_methods.is_empty()
        || methods.any(|it| it.eq_ignore_ascii_case(operation.method));
    is_chosen && has_method && !is_named(&options.exclude) && is_enabled != Some(false)
}

/// Checks that the tags, paths and operations that are named exist: a misspelt tag would choose
/// nothing.
pub(crate) fn check(
    options: &OpenApiOptions,
    operations: &[Operation],
) -> Result<(), OpenApiError> {
    let has_tag = |tag: &&String| {
        let mut tags = operations.iter().flat_map(Operation::tags);
        tags.any(|it| same(it, tag))
    };
    let has_path = |glob: &&String| operations.iter().any(|it| matches(glob, it.path));
    let tags = operations.iter().flat_map(Operation::tags);
    let misspelt = options.include_tags.iter().filter(|it| !has_tag(it));
    all_known("tag", "--include-tag", misspelt, tags)?;
    let misspelt = options.include_paths.iter().filter(|it| !has_path(it));
    let paths = operations.iter().map(|it| it.path);
    all_known("path", "--include-path", misspelt, paths)?;
    check_operations(
        "--include-operation",
        &options.include_operations,
        operations,
    )?;
    check_operations("--exclude", &options.exclude, operations)?;
    check_operations("--rename", options.rename.keys(), operations)?;
    check_operations("--describe", options.describe.keys(), operations)?;
    check_operations("--fix", options.fix.keys(), operations)?;
    check_operations("--once", options.once.keys(), operations)?;
    let is_window = |it: &u64| (1..=120).contains(it) && !options.searchable;
    if !options.once.values().all(is_window) {
        let text = "--once takes 1 to 120 seconds, and is not for --searchable";
        return Err(OpenApiError::new(text));
    }
    let is_there = |it: &&String| operations.iter().any(|one| reads(one, it));
    let misspelt = options.reads.iter().filter(|it| !is_there(it));
    check_operations("--reads", misspelt, operations)
}

/// Checks that the document has the operations that an option names.
fn check_operations<'a>(
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
fn is(operation: &Operation, name: &str) -> bool {
    operation.id() == Some(name) || operation.label() == name
}

/// Returns true if `--reads` names the operation: by its id, or by a pattern of its path.
pub(crate) fn reads(operation: &Operation, name: &str) -> bool {
    is(operation, name) || matches(name, operation.path)
}

/// Returns whether the extension `x-mcp` chooses the operation.
pub(crate) fn enabled(operation: &Operation, document: &Document) -> Option<bool> {
    match operation.extension(document)? {
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
