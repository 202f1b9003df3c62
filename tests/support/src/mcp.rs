//! The calls that every published MCP client makes of the toolbox, and their outcomes.
//!
//! Clients are programs in several languages. Each only reports what it saw; what it must see is
//! here, once.

use std::process::Command;

use serde_json::{Value, json};

use crate::{Running, function_url::FunctionUrl};

/// The current revision, which needs no `initialize`.
pub const MODERN: &str = "2026-07-28";
/// The newest revision with `initialize`.
pub const LEGACY: &str = "2025-11-25";

/// Returns the headers and the body of a request of the current revision, by a client with these
/// capabilities, unless the params have some.
pub fn modern(
    method: &str,
    mut params: Value,
    capabilities: Value,
) -> (Vec<(&'static str, String)>, Value) {
    let meta = &mut params["_meta"];
    meta["io.modelcontextprotocol/protocolVersion"] = MODERN.into();
    let own = &mut meta["io.modelcontextprotocol/clientCapabilities"];
    if own.is_null() {
        *own = capabilities;
    }
    let name = params.get("name").or(params.get("taskId"));
    let name = name.and_then(Value::as_str).unwrap_or_default();
    let headers = [
        ("accept", "application/json, text/event-stream"),
        ("content-type", "application/json"),
        ("mcp-protocol-version", MODERN),
        ("mcp-method", method),
        ("mcp-name", name),
    ];
    let headers = headers.map(|(name, value)| (name, value.to_owned()));
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    (headers.into(), body)
}

/// The API key of the toolbox that peers call.
pub const KEY: &str = "right-0123456789";
/// A key that it does not accept.
pub const WRONG_KEY: &str = "wrong-0123456789";

/// What a call leads to.
enum Outcome {
    /// A result with this structured content.
    Value(Value),
    /// A result that is an error, whose text contains this.
    Failure(&'static str),
    /// An error, because no tool has this name.
    UnknownTool,
}

/// Returns the calls and their outcomes.
fn table() -> [(&'static str, Value, Outcome); 4] {
    let add = "Calculator_Add";
    let sum = Outcome::Value(json!({"result": 15}));
    let invalid = Outcome::Failure("- a: Must be a number.");
    let failure = Outcome::Failure("Doorbell ID not found");
    [
        (add, json!({"a": 10, "b": 5}), sum),
        (add, json!({"a": "x", "b": 5}), invalid),
        ("Doorbell_Ring", json!({"doorbell_id": "none"}), failure),
        ("Calculator_Ad", json!({}), Outcome::UnknownTool),
    ]
}

/// The tools in the order of the list.
const TOOLS: [&str; 5] = [
    "Calculator_Add",
    "Doorbell_Ring",
    "System_GetTimestamp",
    "Gmail_GetEmails",
    "SMS_Send",
];

/// Returns the calls to make: tools and their arguments.
pub fn calls() -> Vec<(&'static str, Value)> {
    let table = table().into_iter();
    table.map(|(tool, input, _)| (tool, input)).collect()
}

/// A client in one of its modes.
pub struct Peer {
    /// For messages of failing tests.
    pub name: &'static str,
    /// The revision that its requests have.
    pub revision: &'static str,
    /// Part of its error for an unknown tool.
    pub unknown_tool: &'static str,
    /// Part of its error for a wrong key: from the local server, and from a function URL, which
    /// renames the header `WWW-Authenticate`.
    pub unauthorized: [&'static str; 2],
}

impl Peer {
    /// Lets the client call the toolbox as a local server, and as a function behind a function URL.
    ///
    /// `client` takes the URL for MCP and returns `{"tools": […], "outcomes": […], "unauthorized":
    /// "…"}`: the names of the tools; `{"value": …}`, `{"failure": "…"}` or `{"error": "…"}` for each
    /// of the [`calls`]; and the error for [`WRONG_KEY`].
    pub async fn verify(
        &self,
        toolbox: impl Fn() -> Command,
        client: impl AsyncFn(String) -> Value,
    ) {
        let settings = [("TOOLS_AUTH", "api-key"), ("TOOLS_API_KEY", KEY)];
        let (running, url) = Running::serving(toolbox().envs(settings));
        let [unauthorized, unauthorized_by_function] = self.unauthorized;
        let answers = client(format!("{url}/mcp")).await;
        self.check("local server", &answers, unauthorized);
        // Each line of the log names the revision that the server saw.
        let line = running.line_with("mcp-", 5);
        assert!(line.contains(self.revision), "{}: {line}", self.name);

        let function = FunctionUrl::start(&mut toolbox(), &settings).await;
        let answers = client(format!("{}/mcp", function.url)).await;
        self.check("function", &answers, unauthorized_by_function);
        let line = function.line_with("mcp-", 5).await;
        assert!(line.contains(self.revision), "{}: {line}", self.name);
    }

    fn check(&self, server: &str, answers: &Value, unauthorized: &str) {
        let context = format!("{}, {server}: {answers:#}", self.name);
        let is_unauthorized = contains(&answers["unauthorized"], unauthorized);
        assert!(is_unauthorized, "{context}");
        assert_eq!(answers["tools"], json!(TOOLS), "{context}");
        let outcomes = answers["outcomes"].as_array().expect(&context);
        assert_eq!(outcomes.len(), table().len(), "{context}");
        for ((tool, input, expected), outcome) in table().iter().zip(outcomes) {
            let is_expected = match expected {
                Outcome::Value(value) => outcome["value"] == *value,
                Outcome::Failure(text) => contains(&outcome["failure"], text),
                Outcome::UnknownTool => contains(&outcome["error"], self.unknown_tool),
            };
            assert!(is_expected, "{tool} {input}: {outcome}\n{context}");
        }
    }
}

fn contains(value: &Value, part: &str) -> bool {
    value.as_str().is_some_and(|text| text.contains(part))
}
