//! The pages of a challenge and the provider's callback: no code is exchanged unless the request
//! brings the state and the cookie of the browser that agreed, and text from others is escaped in the
//! pages.
//!
//! An input is an HTTP request as text: method and target in the first line, then headers, an empty
//! line, and the body. `{id}`, `{state}`, `{cookie}` and `{form}` are replaced by the values of a
//! challenge that a user has opened. An input that begins with `user:` is a user's id, for whom the consent page
//! is shown.

use std::{
    io::{Read, Write},
    net::TcpListener,
    sync::{
        LazyLock,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    thread,
};

use lambda_tools::{OAuth, Server, ServerInfo, secrets::Secrets, testing::LambdaFunction};
use serde_json::{Value, json};

use crate::{
    MemoryBound, bounded,
    runtime::wait,
    server::{SECRETS, google, toolkit},
    store::ResettableStore,
};

/// A page takes a few kilobytes, and a request is copied a few times.
const BOUND: MemoryBound = MemoryBound {
    per_byte: 1024,
    base: 8 << 20,
};

/// The number of requests to the provider's token endpoint.
static EXCHANGES: AtomicUsize = AtomicUsize::new(0);

/// The token endpoint of a provider on this machine, which accepts every code.
fn provider() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("an address");
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || answer(stream));
        }
    });
    format!("http://{address}/token")
}

/// Answers the requests of one connection, each of which arrives as a whole or in two parts.
fn answer(mut stream: std::net::TcpStream) {
    let mut arrived = Vec::new();
    let mut buffer = [0; 4096];
    while let Ok(count @ 1..) = stream.read(&mut buffer) {
        arrived.extend_from_slice(&buffer[..count]);
        let Some(length) = length_of(&arrived) else {
            continue;
        };
        if arrived.len() < length {
            continue;
        }
        arrived.clear();
        EXCHANGES.fetch_add(1, Relaxed);
        let body =
            r#"{"access_token":"token-of-the-user","token_type":"bearer","expires_in":3600}"#;
        let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length:";
        let response = format!("{head} {}\r\n\r\n{body}", body.len());
        if stream.write_all(response.as_bytes()).is_err() {
            return;
        }
    }
}

/// The length of the request that has begun to arrive, once its head is complete.
fn length_of(arrived: &[u8]) -> Option<usize> {
    let head = memchr::memmem::find(arrived, b"\r\n\r\n")?;
    let text = String::from_utf8_lossy(&arrived[..head]).to_ascii_lowercase();
    let (_, rest) = text.split_once("content-length:")?;
    let length: usize = rest.lines().next()?.trim().parse().ok()?;
    Some(head + 4 + length)
}

/// A challenge that a user has opened in a browser, and agreed to.
struct Target {
    function: LambdaFunction,
    store: ResettableStore,
    id: String,
    state: String,
    cookie: String,
    form: String,
    /// The consent page for the user [`USER`].
    page: String,
}

const USER: &str = "user-0123456789-of-this-page";

static TARGET: LazyLock<Target> = LazyLock::new(Target::new);

impl Target {
    fn new() -> Self {
        let store = ResettableStore::default();
        let oauth = OAuth::with([google(&provider())]).in_store(store.clone());
        let server = Server::new(toolkit())
            .secrets(Secrets::fixed(SECRETS))
            .oauth(oauth)
            .public_url("https://tools.example")
            .info(ServerInfo::new("Tools <of> \"all\" & one", "1.0.0"));
        let function = LambdaFunction::new(server);
        let mut target = Self {
            function,
            store,
            id: String::new(),
            state: String::new(),
            cookie: String::new(),
            form: String::new(),
            page: String::new(),
        };
        target.id = target.challenge(USER).expect("a challenge");
        let shown = target.request("GET", &target.start(), &json!({}), "");
        target.page = text_of(&shown);
        target.form = between(&target.page, "name=\"form\" value=\"", "\"");
        let cookie = shown["cookies"][0]
            .as_str()
            .or(shown["headers"]["set-cookie"].as_str());
        target.cookie = cookie
            .expect("a cookie")
            .split(';')
            .next()
            .unwrap_or_default()
            .to_owned();
        let headers = json!({"cookie": target.cookie});
        let form = format!("form={}", target.form);
        let started = target.request("POST", &target.start(), &headers, &form);
        let location = started["headers"]["location"].as_str().expect("a redirect");
        let location = url::Url::parse(location).expect("a URL");
        let state = location.query_pairs().find(|(name, _)| name == "state");
        target.state = state.expect("a state").1.into_owned();
        target.store.keep();
        target
    }

    fn start(&self) -> String {
        format!("/authorization/challenges/{}/start", self.id)
    }

    /// The id of a new challenge of a user.
    fn challenge(&self, user: &str) -> Option<String> {
        let call = json!({"tool_id": "Gmail.GetEmails", "context": {"user_id": user}});
        let response = wait(self.function.invoke(&call.to_string()));
        let response = response.expect("a call by itself has a response");
        let id = response.pointer("/missing_requirements/authorization/0/id");
        id.and_then(Value::as_str).map(str::to_owned)
    }

    fn request(&self, method: &str, target: &str, headers: &Value, body: &str) -> Value {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let event = json!({
            "version": "2.0", "rawPath": path, "rawQueryString": query, "headers": headers,
            "requestContext": {"http": {"method": method, "path": path}},
            "body": body, "isBase64Encoded": false,
        });
        wait(self.function.invoke(&event.to_string())).expect("an event has a response")
    }

    fn filled(&self, text: &str) -> String {
        let text = text
            .replace("{id}", &self.id)
            .replace("{state}", &self.state);
        text.replace("{cookie}", &self.cookie)
            .replace("{form}", &self.form)
    }
}

fn between(text: &str, start: &str, end: &str) -> String {
    let (_, rest) = text.split_once(start).expect("the text contains the start");
    rest.split(end).next().unwrap_or_default().to_owned()
}

fn text_of(response: &Value) -> String {
    response["body"].as_str().unwrap_or_default().to_owned()
}

pub fn run(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else {
        return;
    };
    let target: &Target = &TARGET;
    target.store.reset();
    bounded(data, BOUND, || match text.strip_prefix("user:") {
        Some(user) => check_page(target, user),
        None => check_request(target, text),
    });
}

/// The page for any user differs from that for another only in the escaped id.
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

/// HTML, Serializing: the characters that end a text or an attribute.
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

/// URL Standard, 4.4: a parser of URLs, with which the library reads forms, skips these characters.
fn fields(query: &str) -> Vec<(String, String)> {
    let query = query.replace(['\t', '\n', '\r'], "");
    url::form_urlencoded::parse(query.as_bytes())
        .into_owned()
        .collect()
}

/// RFC 6749, 10.12: the request brings the state of the same browser, once.
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

/// A page has a policy that admits no script, and none of the tags that load something.
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
