//! Answers within a size limit: each byte costs tokens, and a model's context is limited.
//!
//! The result stays valid JSON: lists and texts lose their ends, and a notice says so.

use std::collections::HashSet;

use lambda_tools_core::text::clipped;
use serde_json::{Map, Value};

use crate::plan::ApiTool;

/// The maximum size of an answer, in bytes.
const BUDGET: usize = 64 * 1024;
/// Parameters by which a model can ask for less.
const NARROWING: &str =
    "page per_page page_size pageSize PageSize limit cursor fields opt_fields depth";

/// Cuts an answer that is too large.
pub(super) fn cut(value: Value, plan: &ApiTool) -> Value {
    if size_of(&value) <= BUDGET {
        return value;
    }
    let mut notices = Vec::new();
    let value = cut_to(value, BUDGET, "", &mut notices);
    let parameters = plan.request.parameters.iter();
    let keys = parameters.filter_map(|it| it.key.as_deref());
    let narrows = |key: &&str| NARROWING.split(' ').any(|it| it == *key);
    let keys: Vec<_> = keys.filter(narrows).collect();
    if !keys.is_empty() {
        notices.push(format!("ask for less with {}", keys.join(", ")));
    }
    with_note(value, "_cut", notices.join("; ").into())
}

/// Adds a field to a value. A list becomes an object with its items.
pub(super) fn with_note(value: Value, name: &str, note: Value) -> Value {
    let mut object = match value {
        Value::Object(object) => object,
        Value::Array(_) => Map::from_iter([("items".to_owned(), value)]),
        other => Map::from_iter([("value".to_owned(), other)]),
    };
    object.insert(name.to_owned(), note);
    object.into()
}

fn size_of(value: &Value) -> usize {
    value.to_string().len()
}

fn cut_to(value: Value, budget: usize, path: &str, notices: &mut Vec<String>) -> Value {
    if size_of(&value) <= budget {
        return value;
    }
    let (shown, total, noun, value) = match value {
        Value::Array(items) => {
            let total = items.len();
            let items = cut_list(items, budget, path, notices);
            (items.len(), total, "items", items.into())
        }
        Value::Object(fields) => {
            let total = fields.len();
            let fields = cut_object(fields, budget, path, notices);
            (fields.len(), total, "fields", fields.into())
        }
        Value::String(text) => {
            let (cut, shown) = cut_text(&text, budget);
            (shown, text.len(), "bytes", cut)
        }
        other => return other,
    };
    if shown < total {
        let path = if path.is_empty() { "the answer" } else { path };
        notices.push(format!("{path}: {shown} of {total} {noun} shown"));
    }
    value
}

/// Returns the start of a text that fits in JSON, where a character may have several bytes more, and
/// its length.
fn cut_text(text: &str, budget: usize) -> (Value, usize) {
    let mut end = budget;
    loop {
        end = text.floor_char_boundary(end);
        let cut = Value::from(clipped(text, end));
        let size = size_of(&cut);
        if size <= budget || end == 0 {
            return (cut, end);
        }
        end = (end * budget / size).min(end - 1);
    }
}

fn cut_list(items: Vec<Value>, budget: usize, path: &str, notices: &mut Vec<String>) -> Vec<Value> {
    let mut shown = Vec::new();
    let mut left = budget;
    for item in items {
        let size = size_of(&item) + 1;
        if size > left {
            if shown.is_empty() {
                shown.push(cut_to(item, left, &format!("{path}[0]"), notices));
            }
            break;
        }
        left -= size;
        shown.push(item);
    }
    shown
}

/// Cuts the large fields of an object: small ones stay as they are, the others share the rest.
fn cut_object(
    mut fields: Map<String, Value>,
    budget: usize,
    path: &str,
    notices: &mut Vec<String>,
) -> Map<String, Value> {
    let sizes = fields.iter().map(|(name, it)| (size_of(it), name.clone()));
    let mut sizes: Vec<_> = sizes.collect();
    sizes.sort_unstable();
    let (total, mut left, mut dropped) = (sizes.len(), budget, HashSet::new());
    for (index, (size, name)) in sizes.into_iter().enumerate() {
        let own = name.len() + 4;
        let share = (left / (total - index)).saturating_sub(own);
        let mut size = size + own;
        // A field without room for a part of it is either kept whole or left out.
        if share >= 16 {
            let inner = format!("{path}.{name}");
            let value = fields[&name].take();
            let value = cut_to(value, share, inner.trim_start_matches('.'), notices);
            size = size_of(&value) + own;
            fields[&name] = value;
        } else if size > left {
            dropped.insert(name);
            continue;
        }
        left = left.saturating_sub(size);
    }
    fields.retain(|name, _| !dropped.contains(name));
    fields
}
