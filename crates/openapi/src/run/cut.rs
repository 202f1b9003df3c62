//! Answers within a size limit: each byte costs tokens, and a model's context is limited.
//!
//! The result stays valid JSON: lists and texts lose their ends, and a notice says so.

use lambda_tools_core::text::clipped;
use serde_json::{Map, Value};

use crate::plan::ApiTool;

/// The maximum size of an answer, in bytes.
const BUDGET: usize = 64 * 1024;
/// Parameters by which a model can ask for less.
const NARROWING: [&str; 10] = [
    "page",
    "per_page",
    "page_size",
    "pageSize",
    "PageSize",
    "limit",
    "cursor",
    "fields",
    "opt_fields",
    "depth",
];

/// Cuts an answer that is too large.
pub(super) fn cut(value: Value, plan: &ApiTool) -> Value {
    if size_of(&value) <= BUDGET {
        return value;
    }
    let mut notices = Vec::new();
    let value = cut_to(value, BUDGET, "", &mut notices);
    let keys = plan
        .request
        .parameters
        .iter()
        .filter_map(|it| it.key.as_deref());
    let keys: Vec<_> = keys.filter(|it| NARROWING.contains(it)).collect();
    if !keys.is_empty() {
        notices.push(format!("ask for less with {}", keys.join(", ")));
    }
    let notice = notices.join("; ");
    let mut object = match value {
        Value::Object(object) => object,
        Value::Array(_) => Map::from_iter([("items".to_owned(), value)]),
        other => Map::from_iter([("value".to_owned(), other)]),
    };
    object.insert("_cut".to_owned(), notice.into());
    object.into()
}

fn size_of(value: &Value) -> usize {
    value.to_string().len()
}

fn cut_to(value: Value, budget: usize, path: &str, notices: &mut Vec<String>) -> Value {
    if size_of(&value) <= budget {
        return value;
    }
    match value {
        Value::Array(items) => cut_list(items, budget, path, notices),
        Value::Object(fields) => cut_object(fields, budget, path, notices),
        Value::String(text) => {
            let end = end_within(&text, budget);
            let (path, whole) = (named(path), text.len());
            notices.push(format!("{path}: {end} of {whole} bytes shown"));
            clipped(&text, end).into()
        }
        other => other,
    }
}

/// Returns the length of the longest start of a text that has at most this many bytes in JSON.
fn end_within(text: &str, budget: usize) -> usize {
    // Quotation marks, and what `clipped` adds.
    let mut left = budget.saturating_sub(5);
    let mut exceeds = |(_, it): &(usize, char)| {
        let size = match it {
            '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
            '\0'..' ' => 6,
            other => other.len_utf8(),
        };
        let exceeds = size > left;
        left = left.saturating_sub(size);
        exceeds
    };
    let end = text.char_indices().find(|it| exceeds(it));
    end.map_or(text.len(), |(at, _)| at)
}

fn cut_list(items: Vec<Value>, budget: usize, path: &str, notices: &mut Vec<String>) -> Value {
    let total = items.len();
    let mut shown = Vec::new();
    let mut left = budget;
    for (index, item) in items.into_iter().enumerate() {
        let size = size_of(&item) + 1;
        if size > left {
            if index == 0 {
                shown.push(cut_to(item, left, &format!("{path}[0]"), notices));
            }
            break;
        }
        left -= size;
        shown.push(item);
    }
    notices.push(format!(
        "{}: {} of {total} items shown",
        named(path),
        shown.len()
    ));
    shown.into()
}

/// Cuts the large fields of an object: small ones stay as they are, the others share the rest.
fn cut_object(
    fields: Map<String, Value>,
    budget: usize,
    path: &str,
    notices: &mut Vec<String>,
) -> Value {
    let total = fields.len();
    let mut sizes: Vec<usize> = fields
        .iter()
        .map(|(name, it)| name.len() + size_of(it) + 4)
        .collect();
    sizes.sort_unstable();
    let mut left = budget;
    let mut share = budget;
    for (index, size) in sizes.iter().enumerate() {
        share = left / (total - index);
        if *size > share {
            break;
        }
        left -= size;
    }
    let mut cut = Map::new();
    let mut room = budget;
    for (name, value) in fields {
        let taken = name.len() + 4;
        let path = if path.is_empty() {
            name.clone()
        } else {
            format!("{path}.{name}")
        };
        if taken + 16 > share && size_of(&value) + taken > room.min(share) {
            continue;
        }
        let value = cut_to(value, share.saturating_sub(taken), &path, notices);
        room = room.saturating_sub(size_of(&value) + taken);
        cut.insert(name, value);
    }
    if cut.len() < total {
        notices.push(format!(
            "{}: {} of {total} fields shown",
            named(path),
            cut.len()
        ));
    }
    cut.into()
}

fn named(path: &str) -> &str {
    if path.is_empty() { "the answer" } else { path }
}
