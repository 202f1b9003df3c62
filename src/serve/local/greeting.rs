//! The start-up lines: the server's address and how to call it.

use std::net::SocketAddr;

use crate::{Auth, Protocol, Server, secrets::Secrets, serve::sample};

/// Returns the lines printed once the server listens. Requests are recorded in the folder
/// `recording`, if there is one.
pub(super) fn greeting(server: &Server, address: SocketAddr, recording: Option<&str>) -> String {
    let url = format!("http://{address}");
    let mut lines = vec![format!("Serving tools on {url}")];
    if server.has_explorer() {
        lines.push(format!("Explore and try the tools: {url}/"));
    }
    for (method, path) in server.protocols.iter().flat_map(|it| it.routes()) {
        lines.push(format!("  {:<4} {url}{path}", method.as_str()));
    }
    lines.push(callers(server, address));
    lines.extend(recording.map(|folder| {
        format!(
            "Requests are recorded in {folder}: the clock and the ids are fixed, and no call is \
             remembered."
        )
    }));
    if server.toolkit().entries().is_empty() {
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
    let sample = sample::call_of(server.toolkit(), has_store);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Toolkit;

    const ADDRESS: ([u8; 4], u16) = ([127, 0, 0, 1], 9000);

    fn greeting_of(server: &Server) -> String {
        greeting(server, ADDRESS.into(), None)
    }

    fn server() -> Server {
        use crate::{Failure, Tool};
        use serde_json::{Value, json};

        let nothing = async |_: Value| Ok::<_, Failure>(Value::Null);
        let input = json!({"type": "object"});
        let tool = Tool::dynamic("Hello.Greet@1.0.0", "Greets.", input, json!({}), nothing);
        Server::new(Toolkit::new([tool]).unwrap())
    }

    #[test]
    fn the_routes_are_those_of_the_served_protocols() {
        const OXP: &[&str] = &[
            "GET  /health",
            "GET  /tools",
            "POST /tools/call",
            "POST /tools/{tool_id}/call",
            #[cfg(feature = "openapi")]
            "GET  /openapi.json",
        ];
        const CURL: &[&str] = &["curl "];
        const MCP: [&str; 2] = ["POST /mcp", "claude mcp add "];
        const OPENTOOL: [&str; 3] = [
            "GET  /opentool/version",
            "GET  /opentool/load",
            "POST /opentool/call",
        ];
        for (protocols, lines) in [
            (
                Protocol::ALL,
                &[OXP, &MCP[..1], &OPENTOOL, CURL, &MCP[1..]][..],
            ),
            (&[Protocol::Oxp], &[OXP, CURL]),
            (&[Protocol::Mcp], &[&MCP]),
            (&[Protocol::OpenTool], &[&OPENTOOL]),
            (
                &[Protocol::Mcp, Protocol::OpenTool],
                &[&MCP[..1], &OPENTOOL, &MCP[1..]],
            ),
        ] {
            let server = server().protocols(protocols.iter().copied());
            let text = greeting_of(&server).replace("http://127.0.0.1:9000", "");
            let indented = text.lines().filter_map(|line| line.strip_prefix("  "));
            let lines = lines.concat();
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
        use crate::{ApiKeys, Gateway};

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
        let text = greeting_of(&server().auth(Gateway::new()));
        assert!(text.contains("Bearer YOUR_KEY"), "{text}");
    }

    #[cfg(feature = "oidc")]
    #[test]
    fn users_who_sign_in_need_no_key() {
        use crate::{ApiKeys, Auth, Oidc};

        let issuer = Oidc::issuer("https://idp.example");
        let auth = Auth::from(issuer).or(ApiKeys::with_ids(["KEY"]));
        let text = greeting_of(&server().auth(auth));
        assert!(
            text.contains("users can sign in at https://idp.example.\n"),
            "{text}"
        );
        assert!(text.contains("tools http://127.0.0.1:9000/mcp\n") || text.ends_with("/mcp"));
        assert!(
            text.contains(r#"-H "Authorization: Bearer $KEY""#),
            "{text}"
        );
    }
}
