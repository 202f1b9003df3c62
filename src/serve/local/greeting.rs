//! The start-up lines: the server's address, and a sample call to paste, which is generated from a
//! tool's own schema.

use std::net::SocketAddr;

use serde_json::{Value, json};

use crate::{
    Auth, Protocol, Server, Toolkit,
    observe::log::is_unsafe,
    secrets::Secrets,
    tool::{schema::example::example_of, toolkit::ToolEntry},
};

/// Returns the lines printed once the server listens. Requests are recorded in the folder
/// `recording`, if there is one.
pub(super) fn greeting(server: &Server, address: SocketAddr, recording: Option<&str>) -> String {
    let url = format!("http://{address}");
    let mut lines = vec![format!("Serving tools on {url}")];
    if server.explorer.unwrap_or_default() {
        lines.push(format!("Explore and try the tools: {url}/"));
    }
    let has_openapi = server.openapi.unwrap_or_default();
    let routes = server.protocols.iter();
    for (method, path) in routes.flat_map(|it| it.routes(has_openapi)) {
        lines.push(format!("  {:<4} {url}{path}", method.as_str()));
    }
    lines.push(callers(server, address));
    lines.extend(recording.map(|folder| {
        format!(
            "Requests are recorded in {folder}: the clock and the ids are fixed, and no call is \
             remembered."
        )
    }));
    if server.toolkit.all().next().is_none() {
        lines.push("This server has no tools yet.".into());
    }
    lines.extend(commands(server, &url));
    lines.join("\n")
}

fn callers(server: &Server, address: SocketAddr) -> String {
    if !server.is_open() {
        let issuers = server.issuers().join(" or at ");
        if issuers.is_empty() {
            return "Callers need credentials.".into();
        }
        return format!("Callers need credentials, and users can sign in at {issuers}.");
    }
    let anyone = if address.ip().is_loopback() {
        "on this machine"
    } else {
        "who can reach this address"
    };
    format!("Anyone {anyone} may call; set TOOLS_AUTH=api-key to require a key.")
}

/// Returns the lines to paste.
fn commands(server: &Server, url: &str) -> Vec<String> {
    let key = |option: &str| match server.auth.as_ref().and_then(Auth::key_variable) {
        _ if server.is_open() => String::new(),
        Some(name) => format!(" {option} \"Authorization: Bearer ${name}\""),
        None => format!(" {option} 'Authorization: Bearer YOUR_KEY'"),
    };
    let mut lines = Vec::new();
    let has_store = server.secrets.as_ref().is_some_and(Secrets::has_store);
    let sample = sample_of(&server.toolkit, has_store);
    if let Some(sample) = sample.filter(|_| server.protocols.contains(&Protocol::Oxp)) {
        let key = key("-H");
        lines.push(format!(
            "Try it:\n  curl {url}/tools/call{key} -d '{sample}'"
        ));
    }
    if server.protocols.contains(&Protocol::Mcp) {
        // A client that is given a key does not let its user sign in.
        let key = match *server.issuers() {
            [] => key("--header"),
            [..] => String::new(),
        };
        lines.push(format!(
            "Add it to Claude Code:\n  claude mcp add --transport http tools {url}/mcp{key}"
        ));
    }
    lines
}

/// Returns the body of a call with a valid input: of the first tool that only reads, or else of the
/// least destructive one; of those, of the first one that requires nothing else from its calls. They
/// bring no secrets to a server that `has_store`. `None` if no input can be generated.
fn sample_of(toolkit: &Toolkit, has_store: bool) -> Option<String> {
    let mut entries: Vec<_> = toolkit.entries().iter().collect();
    entries.sort_by_key(|entry| {
        let (hints, needs) = (&entry.tool.hints, &entry.tool.requirements);
        let danger = hints.is_destructive.map_or(1, |it| 2 * u8::from(it));
        let needs_secret = !needs.secrets.is_empty() && !has_store;
        let needs_more = needs.user_id || needs_secret || !needs.authorization.is_empty();
        (hints.is_read_only != Some(true), danger, needs_more)
    });
    let body = entries.into_iter().find_map(body_of)?;
    // The body is printed in single quotes, and a document may have chosen its texts.
    let escape = |it: char| match it {
        '\'' => "'\\''".to_owned(),
        it if is_unsafe(it) => format!("\\u{:04x}", u32::from(it)),
        it => it.to_string(),
    };
    Some(body.to_string().chars().map(escape).collect())
}

fn body_of(entry: &ToolEntry) -> Option<Value> {
    let schema = &entry.tool.input;
    let input = example_of(schema.value(), guess)?;
    schema.check(&input, "input").ok()?.ok()?;
    Some(json!({"tool_id": entry.id.to_string(), "input": input}))
}

/// Returns a value of the schema's type.
fn guess(schema: &Value) -> Option<Value> {
    let first = |keyword: &str| schema.get(keyword)?.get(0);
    if let Some(branch) = first("oneOf").or_else(|| first("anyOf")) {
        return example_of(branch, guess);
    }
    let kind = &schema["type"];
    Some(match kind.as_str().or_else(|| kind[0].as_str())? {
        "string" => json!("text"),
        "number" | "integer" => {
            let minimum = schema.get("minimum");
            let is_more = |it: &&Value| it.as_f64().is_some_and(|it| it > 1.0);
            minimum.filter(is_more).cloned().unwrap_or_else(|| 1.into())
        }
        "boolean" => json!(true),
        "array" => json!([]),
        "object" => json!({}),
        _ => Value::Null,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ApiKeys, Failure, Gateway, Tool};

    const ADDRESS: ([u8; 4], u16) = ([127, 0, 0, 1], 9000);

    fn greeting_of(server: &Server) -> String {
        greeting(server, ADDRESS.into(), None)
    }

    /// Returns a tool with one property.
    fn tool(id: &'static str, mut property: Value) -> Tool {
        let nothing = async |_: Value| Ok::<_, Failure>(Value::Null);
        property["description"] = json!("A property.");
        let input = json!({"type": "object", "properties": {"p": property}, "required": ["p"]});
        Tool::dynamic(id, "A tool.", input, Value::Null, nothing)
    }

    fn plain(id: &'static str) -> Tool {
        tool(id, json!({"type": "string"}))
    }

    fn server() -> Server {
        Server::new(Toolkit::new([plain("Hello.Greet@1.0.0")]).unwrap())
    }

    fn sample(has_store: bool, tools: Vec<Tool>) -> Value {
        let sample = sample_of(&Toolkit::new(tools).unwrap(), has_store);
        sample.map_or(Value::Null, |it| serde_json::from_str(&it).unwrap())
    }

    #[test]
    fn the_routes_are_those_of_the_served_protocols() {
        let openapi = ["", "GET  /openapi.json|"][usize::from(cfg!(feature = "openapi"))];
        let oxp = "GET  /health|GET  /tools|POST /tools/call|POST /tools/{tool_id}/call|";
        let opentool = "GET  /opentool/version|GET  /opentool/load|POST /opentool/call";
        let all = format!("{oxp}{openapi}POST /mcp|{opentool}|curl |claude mcp add ");
        for (protocols, lines) in [
            (Protocol::ALL, all),
            (&[Protocol::Oxp], format!("{oxp}{openapi}curl ")),
            (&[Protocol::Mcp], "POST /mcp|claude mcp add ".to_owned()),
            (&[Protocol::OpenTool], opentool.to_owned()),
        ] {
            let mut server = server().protocols(protocols.iter().copied());
            server.openapi = Some(cfg!(feature = "openapi"));
            let text = greeting_of(&server).replace("http://127.0.0.1:9000", "");
            let indented = text.lines().filter_map(|line| line.strip_prefix("  "));
            let lines: Vec<_> = lines.split('|').collect();
            assert_eq!(indented.clone().count(), lines.len(), "{text}");
            for (line, start) in indented.zip(lines) {
                assert!(line.starts_with(start), "{start}: {text}");
            }
        }
    }

    #[test]
    fn a_recording_is_announced() {
        assert!(!greeting_of(&server()).contains("recorded"));
        let text = greeting(&server(), ADDRESS.into(), Some("events/new"));
        let line = "\nRequests are recorded in events/new: the clock and the ids are fixed, and no \
                    call is remembered.\n";
        assert!(text.contains(line), "{text}");
    }

    #[test]
    fn the_header_names_the_variable_of_the_key() {
        for (id, header) in [
            ("TOOLS_API_KEY", "\"Authorization: Bearer $TOOLS_API_KEY\""),
            ("_k2|NEXT", "\"Authorization: Bearer $_k2\""),
            // These are no names of variables.
            ("tools/KEY", "'Authorization: Bearer YOUR_KEY'"),
            ("K$(id)", "'Authorization: Bearer YOUR_KEY'"),
        ] {
            let text = greeting_of(&server().auth(ApiKeys::with_ids([id])));
            for option in ["-H", "--header"] {
                assert!(text.contains(&format!(" {option} {header}")), "{text}");
            }
        }
        let text = greeting_of(&server().auth(Gateway));
        assert!(text.contains("Bearer YOUR_KEY"), "{text}");
    }

    #[cfg(feature = "oidc")]
    #[test]
    fn users_who_sign_in_need_no_key() {
        use crate::Oidc;

        let issuer = Oidc::issuer("https://idp.example");
        let auth = Auth::from(issuer).or(ApiKeys::with_ids(["KEY"]));
        let text = greeting_of(&server().auth(auth));
        let says = |part: &str| assert!(text.contains(part), "{text}");
        says("users can sign in at https://idp.example.\n");
        says("-H \"Authorization: Bearer $KEY\"");
        assert!(text.contains("tools http://127.0.0.1:9000/mcp\n") || text.ends_with("/mcp"));
    }

    /// A terminal obeys control characters, and a mark of direction hides what is pasted.
    #[test]
    fn a_document_writes_nothing_but_text_to_the_terminal() {
        let text = "\u{1b}[2J\u{9b}2J\u{202e}it's\u{7f}";
        let tool = tool("A.A@1.0.0", json!({"type": "string", "examples": [text]}));
        let call = sample_of(&Toolkit::new([tool]).unwrap(), false).unwrap();
        assert!(!call.contains(is_unsafe), "{call:?}");
        let pasted = call.replace("'\\''", "'");
        let body: Value = serde_json::from_str(&pasted).unwrap();
        assert_eq!(body["input"]["p"], text);
    }

    /// The schemas of a property, and the values in the sample; without one, the tool is skipped.
    const VALUES: &str = r#"[
        [{"oneOf": [{"const": "car"}, {"const": "train"}]}, "car"],
        [{"type": "number", "minimum": -90, "maximum": 90}, 1],
        [{"type": "integer", "minimum": 7}, 7],
        [{"type": "integer", "examples": [-2], "maximum": -2}, -2],
        [{"anyOf": [{"type": "object", "properties": {"kind": {"const": "one"}}, "required": ["kind"]}]},
         {"kind": "one"}],
        [{"type": "string", "pattern": "^[0-9]{4}$"}, null]
    ]"#;

    #[test]
    fn the_sample_value_is_valid_under_the_schema() {
        let rows: Vec<(Value, Value)> = serde_json::from_str(VALUES).unwrap();
        for (property, value) in rows {
            let call = sample(false, vec![tool("A.A@1.0.0", property), plain("B.B@1.0.0")]);
            let is_skipped = value.is_null();
            assert_eq!(call["tool_id"] == "B.B@1.0.0", is_skipped, "{call}");
            assert!(is_skipped || call["input"]["p"] == value, "{call}");
        }
    }

    #[test]
    fn the_least_destructive_tool_is_chosen() {
        let reads = || plain("Z.Reads@1.0.0").read_only(true);
        let adds = || plain("Y.Adds@1.0.0").destructive(false);
        let may = || plain("X.May@1.0.0");
        let deletes = || plain("A.Deletes@1.0.0").destructive(true);
        let all = vec![deletes(), may(), adds(), reads().secret("K")];
        for (tools, expected) in [
            (all, "Z.Reads@1.0.0"),
            (vec![deletes(), may(), adds()], "Y.Adds@1.0.0"),
            (vec![deletes(), may()], "X.May@1.0.0"),
            (vec![deletes()], "A.Deletes@1.0.0"),
            // Of those that are alike, one without requirements, and else the first.
            (vec![plain("A.B@1.0.0").user_id(), may()], "X.May@1.0.0"),
            (vec![plain("A.B@1.0.0").secret("K"), may()], "X.May@1.0.0"),
            (vec![plain("A.B@1.0.0"), may()], "A.B@1.0.0"),
        ] {
            assert_eq!(sample(false, tools)["tool_id"], expected);
        }
        // The store has the secrets.
        let tools = vec![plain("A.B@1.0.0").secret("K"), may()];
        assert_eq!(sample(true, tools)["tool_id"], "A.B@1.0.0");
    }
}
