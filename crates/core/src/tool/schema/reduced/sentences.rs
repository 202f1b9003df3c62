//! Sentences that state a schema's keywords in its description.

use crate::{
    json::JsonObject,
    text::counted,
    tool::schema::vocabulary::{Role, has_role},
};
use serde_json::Value;

use super::keywords::{KINDS, is_bare, listed};

/// Adds a sentence for each keyword; those without one are quoted together.
pub fn add(rest: JsonObject, sentences: &mut Vec<String>) {
    let mut others = JsonObject::new();
    for (keyword, value) in rest {
        match (keyword.as_str(), &value) {
            // Irrelevant to callers.
            (keyword, _) if has_role(keyword, &[Role::Identity]) => {}
            ("readOnly" | "title" | "writeOnly", _)
            | ("additionalProperties" | "unevaluatedProperties", Value::Bool(false))
            | ("items", Value::Bool(true)) => {}
            ("minimum", n) => sentences.push(format!("Must be at least {n}.")),
            ("maximum", n) => sentences.push(format!("Must be at most {n}.")),
            ("minLength", n) => sentences.push(has_count("at least", n, "character")),
            ("maxLength", n) => sentences.push(has_count("at most", n, "character")),
            ("minItems", n) => sentences.push(has_count("at least", n, "item")),
            ("maxItems", n) => sentences.push(has_count("at most", n, "item")),
            ("pattern", Value::String(it)) => {
                sentences.push(format!("Must match the pattern `{it}`."));
            }
            ("format", Value::String(it)) => sentences.push(format!("Format: {it}.")),
            ("default", it) => sentences.push(format!("Default: {it}.")),
            ("examples", Value::Array(all)) => {
                sentences.push(format!("Examples: {}.", listed(all, ", ")));
            }
            ("additionalProperties", it) => match it["type"].as_str() {
                Some(kind) if is_bare(it) => sentences.push(format!("Any other property: {kind}.")),
                _ => sentences.push(format!("Any other property: {it}.")),
            },
            _ => _ = others.insert(keyword, value),
        }
    }
    if !others.is_empty() {
        sentences.push(format!("JSON Schema: {}.", Value::from(others)));
    }
}

fn has_count(bound: &str, count: &Value, noun: &str) -> String {
    format!(
        "Must have {bound} {}.",
        counted(count, noun, &format!("{noun}s"))
    )
}

/// Returns the types besides `kind`.
pub fn of_kinds(kinds: &[&str], kind: &str) -> Option<String> {
    let mut others: Vec<_> = kinds.iter().copied().filter(|it| *it != kind).collect();
    others.sort_by_key(|it| *it == "null");
    match kinds {
        ["null"] => Some("Always null.".into()),
        _ if kinds.len() == KINDS.len() => Some("Any JSON value.".into()),
        _ => (!others.is_empty()).then(|| format!("May also be {}.", others.join(" or "))),
    }
}

/// Returns the text with sentences after it.
pub fn appended(mut text: String, sentences: &[String]) -> String {
    for sentence in sentences {
        if !text.is_empty() {
            let is_ended = text.ends_with(['.', '!', '?', ':']);
            text.push_str(if is_ended { " " } else { ". " });
        }
        text.push_str(sentence);
    }
    text
}
