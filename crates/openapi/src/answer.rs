//! The kind of answer that a tool gives, derived from the responses of its operation.

use serde_json::{Map, Value};

use crate::{
    document::Document,
    media_type::{essence_of, is_json, is_textual},
    operation::Operation,
    plan::Answer,
};

/// Returns the answer of an operation, by its first response with a status 2xx.
pub(crate) fn answer_of(operation: &Operation, document: &Document) -> Answer {
    let responses = operation.object.get("responses").and_then(Value::as_object);
    let with = |digit: char| {
        let mut statuses = responses.into_iter().flatten();
        statuses
            .find(|(status, _)| status.starts_with(digit))
            .map(|(_, it)| it)
    };
    let by_default = || responses?.get("default");
    let Some(response) = with('2').or_else(|| by_default().filter(|_| with('3').is_none())) else {
        return if with('3').is_some() {
            Answer::Redirect
        } else {
            Answer::Any
        };
    };
    let response = document.resolve(response).and_then(Value::as_object);
    let content = response
        .and_then(|it| it.get("content"))
        .and_then(Value::as_object);
    content.map_or(Answer::Any, of_content)
}

fn of_content(content: &Map<String, Value>) -> Answer {
    let find = |is: fn(&str) -> bool| content.keys().map(|it| essence_of(it)).find(|it| is(it));
    let is_concrete = |it: &str| !it.contains('*') && it.contains('/');
    if let Some(media_type) = find(|it| it == "application/json").or_else(|| find(is_json)) {
        return Answer::Json(media_type);
    }
    if let Some(media_type) = find(is_textual) {
        return Answer::Text(media_type);
    }
    match find(|_| true).filter(|it| is_concrete(it)) {
        Some(media_type) => Answer::Content(media_type),
        None => Answer::Any,
    }
}
