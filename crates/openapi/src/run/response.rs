//! The response of an API as the answer of a tool.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::header::{CONTENT_TYPE, LINK, LOCATION};
use lambda_tools_core::{Context, Failure, json::read_whole};
use reqwest::{Response, Url};
use serde_json::{Map, Value, json};

use super::{cut::cut, failure};
use crate::{
    body::is_json,
    plan::{Answer, ApiTool, Place},
};

/// The maximum size, in bytes, of a response: what Lambda can return, in base64.
const LARGEST: usize = 4 * 1024 * 1024;
/// The maximum number of values in a response; each takes about 100 bytes.
const MOST_VALUES: usize = 500_000;

/// Returns the answer for a response, or its failure.
pub(super) async fn value_of(
    response: Response,
    plan: &ApiTool,
    repeats: bool,
    cx: &Context,
) -> Result<Value, Failure> {
    let status = response.status();
    let header = |name| failure::header_of(&response, name);
    if status.is_redirection()
        && plan.request.answer == Answer::Redirect
        && let Some(place) = header(LOCATION)
    {
        return Ok(json!({"location": place}));
    }
    if !status.is_success() {
        return Err(failure::of_response(response, plan, repeats, cx).await);
    }
    let media_type = header(CONTENT_TYPE).unwrap_or_default();
    let next = header(LINK).and_then(|links| next_in(&links, plan));
    let body = body_of(response, repeats).await?;
    let is_content = matches!(plan.request.answer, Answer::Content(_));
    let essence = media_type
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase();
    if is_content && !is_json(&essence) {
        return Ok(content(essence, &body));
    }
    let value = if body.is_empty() {
        Value::Null
    } else {
        read(&essence, body)?
    };
    if is_content {
        return Ok(json!({"media_type": "application/json", "text": value.to_string()}));
    }
    Ok(with_next(cut(value, plan), next))
}

/// Reads the body of a response.
pub(super) async fn body_of(mut response: Response, repeats: bool) -> Result<Vec<u8>, Failure> {
    let mut body = Vec::new();
    loop {
        let chunk = response
            .chunk()
            .await
            .map_err(|error| failure::of_error(error, repeats))?;
        let Some(chunk) = chunk else {
            return Ok(body);
        };
        if body.len() + chunk.len() > LARGEST {
            let text = format!(
                "The API's response is larger than {} MB: ask for less",
                LARGEST >> 20
            );
            return Err(Failure::new(text));
        }
        body.extend(chunk);
    }
}

/// Returns the bytes as content: see [`lambda_tools_core::Content`].
fn content(media_type: String, body: &[u8]) -> Value {
    let media_type = if media_type.is_empty() {
        "application/octet-stream".to_owned()
    } else {
        media_type
    };
    match std::str::from_utf8(body) {
        Ok(text) if media_type.starts_with("text/") => {
            json!({"media_type": media_type, "text": text})
        }
        _ => json!({"media_type": media_type, "data": STANDARD.encode(body)}),
    }
}

/// Returns JSON as its value, text as text, and other bytes as an object with their base64.
fn read(essence: &str, body: Vec<u8>) -> Result<Value, Failure> {
    if is_json(essence) || essence.is_empty() {
        match read_whole(&body, MOST_VALUES) {
            Ok(value) => return Ok(value),
            Err(_) if essence.is_empty() => {}
            Err(_) => return Err(Failure::new("The API's response is not JSON, or too large")),
        }
    }
    Ok(match String::from_utf8(body) {
        Ok(text) => text.into(),
        Err(error) => content(essence.to_owned(), error.as_bytes()),
    })
}

/// Returns the parameters of the next page, as the tool calls them: RFC 8288.
fn next_in(links: &str, plan: &ApiTool) -> Option<Map<String, Value>> {
    let next = links
        .split(',')
        .find(|it| it.contains("rel=\"next\"") || it.contains("rel=next"))?;
    let (_, rest) = next.split_once('<')?;
    let (url, _) = rest.split_once('>')?;
    let base = Url::parse("https://relative.invalid").ok()?;
    let url = base.join(url).ok()?;
    let pairs = url.query_pairs().filter_map(|(name, text)| {
        let mut parameters = plan.request.parameters.iter();
        let is_it = parameters.find(|it| it.place == Place::Query && it.name() == name);
        Some((is_it?.key.clone()?, Value::from(&*text)))
    });
    let next: Map<String, Value> = pairs.collect();
    (!next.is_empty()).then_some(next)
}

/// Adds the parameters of the next page. A list becomes an object with its items.
fn with_next(value: Value, next: Option<Map<String, Value>>) -> Value {
    let Some(next) = next else {
        return value;
    };
    let mut object = match value {
        Value::Object(object) => object,
        other => Map::from_iter([("items".to_owned(), other)]),
    };
    object.insert("_next".to_owned(), next.into());
    object.into()
}
