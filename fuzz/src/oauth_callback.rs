//! The pages of a challenge and the provider's callback: no code is exchanged unless the request
//! brings the state and the cookie of the browser that agreed, and text from others is escaped in
//! the pages.
//!
//! An input is an HTTP request as text: method and target in the first line, then headers, an empty
//! line, and the body. `{id}`, `{state}`, `{cookie}` and `{form}` are replaced by the values of a
//! challenge that a user has opened. An input that begins with `user:` is a user's id, for whom the
//! consent page is shown.

mod challenge;
mod provider;

use std::sync::atomic::Ordering::Relaxed;

use serde_json::{Value, json};

use crate::{MemoryBound, bounded};
use challenge::{TARGET, Target, USER, between, text_of};
use provider::EXCHANGES;

/// A page takes a few kilobytes, and a request is copied a few times.
const BOUND: MemoryBound = MemoryBound {
    per_byte: 1024,
    base: 8 << 20,
};

pub fn run(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else {
        return;
    };
    let target: &Target = &TARGET;
    target.store.reset();
    bounded(data.len(), BOUND, || match text.strip_prefix("user:") {
        Some(user) => check_page(target, user),
        None => check_request(target, text),
    });
}

/// Checks that the page for any user differs from that for another only in the escaped id.
fn check_page(target: &Target, user: &str) {
    let Some(id) = target.challenge(user) else {
        return;
    };
    let path = format!("/authorization/challenges/{id}/start");
    let page = text_of(&target.request("GET", &path, &json!({}), ""));
    let form = between(&page, "name=\"form\" value=\"", "\"");
    let page = page.replace(&form, &target.form);
    let expected = target.page.replace(USER, &escaped(user));
    assert_eq!(page, expected, "{user:?}");
}

/// Escapes the characters that end a text or an attribute (HTML, Serializing).
fn escaped(text: &str) -> String {
    let text = text
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;");
    text.replace('"', "&quot;").replace('\'', "&#39;")
}

struct ParsedRequest {
    method: String,
    target: String,
    headers: Vec<(String, String)>,
    body: String,
}

fn parsed(text: &str) -> Option<ParsedRequest> {
    let (head, body) = text.split_once("\n\n").unwrap_or((text, ""));
    let mut lines = head.lines();
    let (method, target) = lines.next()?.split_once(' ')?;
    let is_token = |it: char| it.is_ascii_alphabetic();
    let is_visible = |it: char| it.is_ascii_graphic();
    if !method.chars().all(is_token) || !target.starts_with('/') || !target.chars().all(is_visible)
    {
        return None;
    }
    let header = |line: &str| {
        let (name, value) = line.split_once(':')?;
        Some((name.trim().to_ascii_lowercase(), value.trim().to_owned()))
    };
    Some(ParsedRequest {
        method: method.to_owned(),
        target: target.to_owned(),
        headers: lines.filter_map(header).collect(),
        body: body.to_owned(),
    })
}

fn check_request(target: &Target, text: &str) {
    let Some(request) = parsed(&target.filled(text)) else {
        return;
    };
    let headers: serde_json::Map<_, _> = request
        .headers
        .iter()
        .map(|(name, value)| (name.clone(), json!(value)))
        .collect();
    let before = EXCHANGES.load(Relaxed);
    let headers = Value::Object(headers);
    let response = target.request(&request.method, &request.target, &headers, &request.body);
    let exchanged = EXCHANGES.load(Relaxed) - before;
    let cookies = headers["cookie"].as_str().unwrap_or_default();
    let has_cookie = cookies.split(';').any(|it| it.trim() == target.cookie);
    assert!(exchanged <= 1, "{exchanged} exchanges: {text:?}");
    if exchanged == 1 {
        assert!(
            has_cookie && is_callback(target, &request),
            "exchanged a code: {text:?}"
        );
    }
    if response["statusCode"] == 303 {
        let has_form = fields(&request.body).contains(&("form".to_owned(), target.form.clone()));
        let is_start = request
            .target
            .split('?')
            .next()
            .is_some_and(|it| it.contains("/start"));
        assert!(has_cookie && has_form && is_start, "redirected: {text:?}");
    }
    check_document(&response);
}

/// Parses the fields of a query. A parser of URLs, with which the library reads forms, skips these
/// characters (URL Standard, 4.4).
fn fields(query: &str) -> Vec<(String, String)> {
    let query = query.replace(['\t', '\n', '\r'], "");
    url::form_urlencoded::parse(query.as_bytes())
        .into_owned()
        .collect()
}

/// Returns true if the request brings the state of the same browser, once (RFC 6749, 10.12).
fn is_callback(target: &Target, request: &ParsedRequest) -> bool {
    let query = request
        .target
        .split_once('?')
        .map_or("", |(_, query)| query);
    let states = fields(query)
        .into_iter()
        .filter(|(name, _)| name == "state");
    let states: Vec<_> = states.map(|(_, value)| value).collect();
    request.method == "GET" && states == [target.state.as_str()]
}

/// Checks that a page has a policy that admits no script, and none of the tags that load something.
fn check_document(response: &Value) {
    let headers = &response["headers"];
    let kind = headers["content-type"].as_str().unwrap_or_default();
    if !kind.starts_with("text/html") {
        return;
    }
    let policy = headers["content-security-policy"]
        .as_str()
        .unwrap_or_default();
    assert!(policy.contains("default-src 'none'"), "{response}");
    let page = text_of(response).to_ascii_lowercase();
    for tag in [
        "<script",
        "<img",
        "<iframe",
        "<link",
        "<object",
        "javascript:",
        " onerror",
    ] {
        assert!(!page.contains(tag), "{tag}: {page}");
    }
}
