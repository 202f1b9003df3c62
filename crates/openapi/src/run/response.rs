//! The response of an API as the answer of a tool.

use std::borrow::Cow;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::header::{CONTENT_TYPE, LINK, LOCATION};
use lambda_tools_core::{Context, Failure, json::read_whole};
use lambda_tools_schema::is_type;
use reqwest::{Response, Url};
use serde_json::{Map, Value, json};

use super::{
    cut::{cut, with_note},
    failure,
};
use crate::{
    media_type::{essence_of, is_json, is_textual},
    plan::{Answer, ApiTool, Encoding, Place},
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
    let links = response.headers().get_all(LINK).into_iter();
    let links: Vec<_> = links.filter_map(|it| it.to_str().ok()).collect();
    let next = next_in(&links.join(","), plan);
    let body = in_utf8(&media_type, body_of(response, repeats).await?);
    let is_content = matches!(plan.request.answer, Answer::Content(_));
    let essence = essence_of(&media_type);
    if is_content && !is_json(&essence) {
        return Ok(content(essence, &body));
    }
    let value = match &*body {
        [] => Value::Null,
        _ => read(&essence, body)?,
    };
    if is_content {
        return Ok(json!({"media_type": "application/json", "text": value.to_string()}));
    }
    let value = cut(value, plan);
    Ok(match next {
        Some(next) => with_note(value, "_next", next.into()),
        None => value,
    })
}

/// Reads the body of a response.
pub(super) async fn body_of(mut response: Response, repeats: bool) -> Result<Vec<u8>, Failure> {
    let mut body = Vec::new();
    let broken = |error| failure::of_error(error, repeats);
    while let Some(chunk) = response.chunk().await.map_err(broken)? {
        if body.len() + chunk.len() > LARGEST {
            let most = LARGEST >> 20;
            let text = format!("The API's response is larger than {most} MB: ask for less");
            return Err(Failure::new(text));
        }
        body.extend(chunk);
    }
    Ok(body)
}

/// Returns the bytes as content: see [`lambda_tools_core::Content`].
fn content(media_type: String, body: &[u8]) -> Value {
    let media_type = Some(media_type).filter(|it| !it.is_empty());
    let media_type = media_type.unwrap_or_else(|| "application/octet-stream".to_owned());
    match std::str::from_utf8(body) {
        Ok(text) if is_textual(&media_type) => {
            json!({"media_type": media_type, "text": text})
        }
        _ => json!({"media_type": media_type, "data": STANDARD.encode(body)}),
    }
}

/// Returns JSON as its value, text as text, and other bytes as an object with their base64.
fn read(essence: &str, body: Vec<u8>) -> Result<Value, Failure> {
    if is_json(essence) || essence.is_empty() {
        match read_whole(&with_large_integers(&body), MOST_VALUES) {
            Ok(value) => return Ok(value),
            Err(_) if essence.is_empty() => {}
            Err(_) => return Err(Failure::new("The API's response is not JSON, or too large")),
        }
    }
    Ok(match String::from_utf8(body) {
        Ok(text) => text.trim_start_matches('\u{feff}').into(),
        Err(error) => content(essence.to_owned(), error.as_bytes()),
    })
}

/// Returns a text in UTF-8 that is in another encoding of the web, as `charset` says.
fn in_utf8(media_type: &str, body: Vec<u8>) -> Vec<u8> {
    let charset = media_type.to_ascii_lowercase();
    let charset = charset.split_once("charset=").map_or("", |(_, it)| it);
    let charset = charset.split(';').next().unwrap_or_default().trim();
    match encoding_rs::Encoding::for_label(charset.trim_matches('"').as_bytes()) {
        Some(encoding) if encoding != encoding_rs::UTF_8 => {
            encoding.decode(&body).0.into_owned().into_bytes()
        }
        _ => body,
    }
}

/// Returns JSON with integers that no number here can hold as texts, which are exact.
fn with_large_integers(json: &[u8]) -> Cow<'_, [u8]> {
    const LONGEST_U64: usize = 20;
    let (mut quoted, mut copied, mut at, mut in_text) = (Vec::new(), 0, 0, false);
    while let Some(byte) = json.get(at) {
        let start = at;
        at += 1;
        match byte {
            b'\\' if in_text => at += 1,
            b'"' => in_text = !in_text,
            b'-' | b'0'..=b'9' if !in_text => {
                let is_part = |it: &u8| it.is_ascii_digit() || b"+-.eE".contains(it);
                let length = json[at..].iter().take_while(|it| is_part(it)).count();
                at += length;
                let number = &json[start..at];
                let is_integer =
                    number.iter().skip(1).all(u8::is_ascii_digit) && length + 1 >= LONGEST_U64 - 1;
                let text = str::from_utf8(number).unwrap_or_default();
                if is_integer && text.parse::<u64>().is_err() && text.parse::<i64>().is_err() {
                    quoted.extend([&json[copied..start], b"\"", number, b"\""].concat());
                    copied = at;
                }
            }
            _ => {}
        }
    }
    if copied == 0 {
        return json.into();
    }
    quoted.extend(&json[copied..]);
    quoted.into()
}

/// Returns the parameters of the next page, as the tool calls them: RFC 8288.
fn next_in(links: &str, plan: &ApiTool) -> Option<Map<String, Value>> {
    let url = next_url(links)?;
    let base = Url::parse("https://relative.invalid").ok()?;
    let url = base.join(url).ok()?;
    let mut next = Map::new();
    let parameters = plan.request.parameters.iter();
    for it in parameters.filter(|it| it.place == Place::Query) {
        let texts = url.query_pairs().filter(|(name, _)| *name == it.name());
        let texts: Vec<_> = texts.map(|(_, text)| text.into_owned()).collect();
        if let Some((key, last)) = it.key.as_ref().zip(texts.last()) {
            let value = if has_type(&it.schema, &["array"]) {
                let items = &it.schema["items"];
                let separated = match it.encoding {
                    Encoding::Comma => last.split(',').collect(),
                    Encoding::Space => last.split(' ').collect(),
                    Encoding::Pipe => last.split('|').collect(),
                    _ => texts.iter().map(String::as_str).collect::<Vec<_>>(),
                };
                separated.into_iter().map(|it| typed(it, items)).collect()
            } else {
                typed(last, &it.schema)
            };
            next.insert(key.clone(), value);
        }
    }
    (!next.is_empty()).then_some(next)
}

/// Returns the URL of the first link with the relation `next`.
fn next_url(links: &str) -> Option<&str> {
    split_outside(links, ',').find_map(|link| {
        let mut parts = split_outside(link, ';').map(str::trim);
        let url = parts.next()?.strip_prefix('<')?.strip_suffix('>')?;
        let relations = parts.filter_map(|it| {
            let (name, value) = it.split_once('=')?;
            let is_relation = name.trim().eq_ignore_ascii_case("rel");
            is_relation.then(|| value.trim().trim_matches('"'))
        });
        let mut relations = relations.flat_map(str::split_ascii_whitespace);
        let is_next = relations.any(|it| it.eq_ignore_ascii_case("next"));
        is_next.then_some(url)
    })
}

/// Splits a text at a character outside of URLs and of quoted texts.
fn split_outside(text: &str, separator: char) -> impl Iterator<Item = &str> {
    let (mut in_url, mut is_quoted) = (false, false);
    text.split(move |it| {
        match it {
            '"' if !in_url => is_quoted = !is_quoted,
            '<' | '>' if !is_quoted => in_url = it == '<',
            _ => {}
        }
        it == separator && !in_url && !is_quoted
    })
}

fn has_type(schema: &Value, names: &[&str]) -> bool {
    let has = |name: &&str| schema.as_object().is_some_and(|it| is_type(it, name));
    let mut branches = schema["anyOf"].as_array().into_iter().flatten();
    names.iter().any(has) || branches.any(|it| has_type(it, names))
}

/// Returns a text of a URL as the type that the schema of its parameter has.
fn typed(text: &str, schema: &Value) -> Value {
    let parsed: Option<Value> = serde_json::from_str(text).ok();
    let values = schema["enum"].as_array();
    let is_wanted = |it: &Value| {
        (it.is_number() && has_type(schema, &["integer", "number"]))
            || (it.is_boolean() && has_type(schema, &["boolean"]))
            || values.is_some_and(|all| all.contains(it))
    };
    parsed.filter(is_wanted).unwrap_or_else(|| text.into())
}
