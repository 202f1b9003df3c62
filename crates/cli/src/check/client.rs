//! A client that trusts no server: its requests are limited in time and size, and follow no redirect.

use std::time::Duration;

use reqwest::{RequestBuilder, Url, redirect::Policy};
use serde_json::{Map, Value, json};
use tokio::runtime::{Builder, Runtime};

use crate::{Error, args::Server, source};

/// The revision of MCP without `initialize`.
pub(super) const MODERN: &str = "2026-07-28";
/// The time limit for a request.
const LONGEST: Duration = Duration::from_secs(10);
/// The maximum size of a response.
const LARGEST: usize = 1 << 20;

pub(super) struct Client {
    pub(super) runtime: Runtime,
    pub(super) http: reqwest::Client,
    pub(super) options: Server,
    /// The facts of the steps before.
    pub(super) known: Value,
    pub(super) is_modern: bool,
    /// The headers that all further messages carry.
    pub(super) headers: Vec<(&'static str, String)>,
}

impl Client {
    pub(super) fn new(options: Server) -> Result<Self, Error> {
        let http = reqwest::Client::builder().timeout(LONGEST);
        Ok(Self {
            runtime: Builder::new_current_thread().enable_all().build()?,
            http: http.redirect(Policy::none()).build()?,
            options,
            known: json!({}),
            is_modern: false,
            headers: Vec::new(),
        })
    }

    /// Returns status, headers and body of the response.
    pub(super) fn send(&self, request: RequestBuilder) -> Result<Value, Error> {
        self.runtime.block_on(read(request))
    }

    /// Returns a URL that the server has named, unless others could read what is sent there, or it is one
    /// of this machine and the server's is not.
    pub(super) fn named(&self, place: &str) -> Result<Url, Error> {
        let url = self.options.url.join(place)?;
        let are_local = [&url, &self.options.url].map(|it| source::is_loopback(it.as_str()));
        let is_safe = are_local == [true, true] || !are_local[0] && url.scheme() == "https";
        is_safe.then_some(url).ok_or("it is not https".into())
    }

    /// Returns a document whose place the server has named.
    pub(super) fn document(&self, place: &str) -> Result<Value, Error> {
        let mut response = self.send(self.http.get(self.named(place)?))?;
        let document = Some(response["body"].take());
        let document = document.filter(|it| response["status"] == 200 && it.is_object());
        document.ok_or_else(|| format!("{} without a document", response["status"]).into())
    }

    /// Sends the message with which clients of the older era begin.
    pub(super) fn initialize(&self) -> Result<Value, Error> {
        let client = json!({"name": "lambda-tools", "version": env!("CARGO_PKG_VERSION")});
        let params =
            json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client});
        self.message("initialize", params)
    }

    /// Sends a message, and returns the response to it.
    pub(super) fn message(&self, method: &str, mut params: Value) -> Result<Value, Error> {
        let mut request = self.http.post(self.options.url.clone());
        request = request.header("accept", "application/json, text/event-stream");
        request = request.header("content-type", "application/json");
        for (name, value) in &self.headers {
            request = request.header(*name, value);
        }
        if self.is_modern {
            request = request.header("mcp-protocol-version", MODERN);
            request = request.header("mcp-method", method);
            if let Some(name) = params["name"].as_str() {
                request = request.header("mcp-name", name);
            }
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": MODERN,
                "io.modelcontextprotocol/clientCapabilities": {},
            });
        }
        let mut message = json!({"jsonrpc": "2.0", "method": method, "params": params});
        if !method.starts_with("notifications/") {
            message["id"] = 1.into();
        }
        self.send(request.body(message.to_string()))
    }

    /// Sends a message, and returns its result.
    pub(super) fn result(&self, method: &str, params: Value) -> Result<Value, Error> {
        let mut response = self.message(method, params)?;
        let result = Some(response["body"]["result"].take()).filter(Value::is_object);
        let said = &response["body"]["error"]["message"];
        result.ok_or_else(|| format!("{method}: {}, {said}", response["status"]).into())
    }
}

async fn read(request: RequestBuilder) -> Result<Value, Error> {
    let response = request.send().await;
    let mut response = response.map_err(reqwest::Error::without_url)?;
    let body = source::body(&mut response, LARGEST).await?;
    let text = String::from_utf8_lossy(&body);
    // In a stream of events, the answer is the last one.
    let events = text.lines().filter_map(|it| it.strip_prefix("data:"));
    let values = events.chain([&*text]).map(serde_json::from_str::<Value>);
    let headers = response.headers().iter().map(|(name, value)| {
        let value = String::from_utf8_lossy(value.as_bytes());
        (name.to_string(), Value::from(value))
    });
    Ok(json!({
        "status": response.status().as_u16(),
        "headers": headers.collect::<Map<_, _>>(),
        "body": values.flatten().rfind(Value::is_object),
    }))
}

/// Returns a text; empty if it is none.
pub(super) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use reqwest::Url;

    use super::Client;
    use crate::args::Server;

    fn can_name(own: &str, place: &str) -> bool {
        let options = Server {
            url: Url::parse(own).unwrap(),
            key: None,
            sign_in: true,
            client_id: None,
            call: Vec::new(),
        };
        Client::new(options).unwrap().named(place).is_ok()
    }

    #[test]
    fn a_server_names_no_place_of_this_machine_or_without_tls() {
        let remote = "https://tools.example/mcp";
        assert!(can_name(remote, "/token") && can_name(remote, "https://issuer.example/token"));
        for place in [
            "http://issuer.example",
            "http://127.0.0.1:8000",
            "https://localhost",
            "file:///etc",
        ] {
            assert!(!can_name(remote, place), "{place}");
        }
        let local = "http://127.0.0.1:9000/mcp";
        assert!(can_name(local, "/token") && can_name(local, "http://127.0.0.1:8000"));
        assert!(!can_name(local, "http://issuer.example"));
    }
}
