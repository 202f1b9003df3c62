//! Events as an API Gateway HTTP API sends them, in payload format 2.0, and direct calls.

use serde_json::{Value, json};

/// The domain of the API, which the answers name.
pub(crate) const DOMAIN: &str = "tools.example";

/// The credentials of a caller.
#[derive(Clone, Debug)]
pub(crate) enum Credential {
    ApiKey(&'static str),
    /// An access token, or anything else that is sent as one.
    Token(String),
    None,
}

/// An event for the function.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    json: Value,
    /// True if the event is a call, and its answer a body without a status.
    pub(crate) is_direct: bool,
}

impl Event {
    pub(crate) fn new(method: &str, path: &str) -> Self {
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let json = json!({
            "version": "2.0",
            "routeKey": "$default",
            "rawPath": path,
            "rawQueryString": query,
            "headers": {
                "accept": "*/*",
                "host": DOMAIN,
                "user-agent": "soak",
                "x-amzn-trace-id": "Root=1-651ea2a0-1b2c3d4e5f60718293a4b5c6",
                "x-forwarded-for": "203.0.113.17",
                "x-forwarded-port": "443",
                "x-forwarded-proto": "https",
            },
            "requestContext": {
                "accountId": "123456789012",
                "apiId": "r3pmxmplak",
                "domainName": DOMAIN,
                "domainPrefix": "tools",
                "http": {
                    "method": method,
                    "path": path,
                    "protocol": "HTTP/1.1",
                    "sourceIp": "203.0.113.17",
                    "userAgent": "soak",
                },
                "requestId": "MXm1chcCiYcEJ7A=",
                "routeKey": "$default",
                "stage": "$default",
                "time": "05/Oct/2023:12:00:00 +0000",
                "timeEpoch": 1_696_507_200_000_u64,
            },
            "isBase64Encoded": false,
        });
        Self {
            json,
            is_direct: false,
        }
    }

    pub(crate) fn get(path: &str) -> Self {
        Self::new("GET", path)
    }

    pub(crate) fn post(path: &str, body: &Value) -> Self {
        Self::new("POST", path).body(&body.to_string())
    }

    /// An event that is a call.
    pub(crate) fn direct(body: &Value) -> Self {
        Self {
            json: body.clone(),
            is_direct: true,
        }
    }

    /// Sets the body, of any text.
    pub(crate) fn body(mut self, text: &str) -> Self {
        self.json["body"] = text.into();
        self.header("content-type", "application/json")
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.json["headers"][name] = value.into();
        self
    }

    pub(crate) fn credential(self, credential: &Credential) -> Self {
        match credential {
            Credential::ApiKey(key) => self.header("oxp-api-key", key),
            Credential::Token(token) => self.header("authorization", &format!("Bearer {token}")),
            Credential::None => self,
        }
    }

    /// The same request over HTTP.
    pub(crate) fn as_http(&self) -> Vec<u8> {
        let text = |pointer: &str| self.json.pointer(pointer).and_then(Value::as_str);
        let method = text("/requestContext/http/method").unwrap_or("GET");
        let path = text("/rawPath").unwrap_or("/");
        let query = text("/rawQueryString").filter(|query| !query.is_empty());
        let query = query.map(|query| format!("?{query}")).unwrap_or_default();
        let body = text("/body").unwrap_or_default();
        let mut request = format!("{method} {path}{query} HTTP/1.1\r\n");
        for (name, value) in self.json["headers"].as_object().into_iter().flatten() {
            // Those that begin with `x-` are the gateway's.
            if let Some(value) = value.as_str().filter(|_| !name.starts_with("x-")) {
                request.extend([name, ": ", value, "\r\n"]);
            }
        }
        let length = body.len().to_string();
        request.extend(["content-length: ", &length, "\r\n\r\n", body]);
        request.into_bytes()
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.json.to_string().into_bytes()
    }
}
