//! Requests that are rejected: malformed, unknown, invalid, and without credentials.

use serde_json::{Value, json};

use super::Client;
use crate::{
    answer::Answer,
    event::{Credential, Event},
    protocol::{Call, Protocol, mcp},
};

impl Client {
    pub(super) async fn invalid(&mut self) -> Option<()> {
        match self.random.u8(..3) {
            0 => self.invalid_input().await,
            1 => self.unknown_tool().await,
            _ => self.malformed().await,
        }
    }

    async fn invalid_input(&mut self) -> Option<()> {
        let call = Call {
            protocol: self.any_protocol(),
            tool: "Load.Add",
            id: self.new_id(),
            input: json!({"client": self.number, "a": "x", "c": self.last}),
            context: Value::Null,
        };
        let expected = call.invalid_input(&[
            ("a", "Must be an integer"),
            ("b", "Is required"),
            (
                "c",
                "Is not a parameter of this tool; it takes a, b, client",
            ),
        ]);
        let event = call.event(&self.credential());
        self.expect("invalid input", event, &expected).await?;
        Some(())
    }

    async fn unknown_tool(&mut self) -> Option<()> {
        let call = Call {
            protocol: self.any_protocol(),
            tool: "Weather.Forecast",
            id: self.new_id(),
            input: json!({}),
            context: Value::Null,
        };
        let expected = call.unknown_tool();
        let event = call.event(&self.credential());
        self.expect("unknown tool", event, &expected).await?;
        Some(())
    }

    /// Requests that no tool gets, whose answers never change.
    async fn malformed(&mut self) -> Option<()> {
        let (name, status, event) = match self.random.u8(..9) {
            0 => ("unknown path", 404, Event::get("/nothing")),
            1 => ("another method", 405, Event::get("/tools/call")),
            2 => ("MCP over GET", 405, Event::get("/mcp")),
            3 => (
                "no JSON",
                400,
                Event::new("POST", "/tools/call").body("{\"tool_id\": "),
            ),
            4 => ("no body", 400, Event::new("POST", "/tools/call")),
            5 => {
                let both = json!({"tool_id": "Load.Add", "request": {}});
                ("both forms", 400, Event::post("/tools/call", &both))
            }
            6 => {
                let list = json!([]);
                (
                    "no JSON-RPC request",
                    400,
                    Event::post("/opentool/call", &list),
                )
            }
            7 => {
                let event = mcp(Protocol::McpModern, "tools/list", json!({}));
                (
                    "no JSON type",
                    415,
                    event.header("content-type", "text/plain"),
                )
            }
            _ => {
                let body = "x".repeat((1 << 20) + 1);
                (
                    "body too large",
                    400,
                    Event::new("POST", "/tools/call").body(&body),
                )
            }
        };
        let event = event.credential(&self.credential());
        let check = |answer: &Answer| has_status(answer, status);
        self.compare("malformed request", name, event, check)
            .await?;
        Some(())
    }

    pub(super) async fn unauthorized(&mut self) -> Option<()> {
        if self.random.u8(..5) == 0 {
            return self.insufficient_scope().await;
        }
        let protocol = self.any_protocol_over_http();
        let credentials = [
            ("no credentials", Credential::None),
            ("a wrong key", Credential::ApiKey("wrong-0123456789abcdef")),
            ("no token", Credential::Token("a.b.c".into())),
            (
                "a forged token",
                Credential::Token(self.shared.issuer.forged_token("user")),
            ),
            ("a changed token", Credential::Token(self.changed_token())),
        ];
        let (name, credential) = &credentials[self.random.usize(..credentials.len())];
        let call = Call {
            protocol,
            tool: "Load.Add",
            // The same for all, so that the answers are.
            id: "rejected".into(),
            input: json!({"client": 1, "a": 1, "b": 2}),
            context: Value::Null,
        };
        let event = call.event(credential);
        let name = format!("{}, {name}", protocol.name());
        let check = |answer: &Answer| has_status(answer, 401);
        self.compare("unauthorized", &name, event, check).await?;
        Some(())
    }

    /// A valid token for another user, with the signature of the first one.
    fn changed_token(&self) -> String {
        let issuer = &self.shared.issuer;
        let (own, other) = (issuer.token("user"), issuer.token("other"));
        let message = other.rsplit_once('.').map_or("", |(message, _)| message);
        let signature = own.rsplit_once('.').map_or("", |(_, signature)| signature);
        format!("{message}.{signature}")
    }

    async fn insufficient_scope(&mut self) -> Option<()> {
        let token = Credential::Token(self.shared.issuer.token(&self.user()));
        let call = Call {
            protocol: self.any_protocol_over_http(),
            tool: "Load.Send",
            id: "rejected".into(),
            input: json!({"client": 1}),
            context: Value::Null,
        };
        let status = match call.protocol {
            Protocol::McpModern | Protocol::McpLegacy => 403,
            Protocol::OpenTool => 200,
            _ => 400,
        };
        let event = call.event(&token);
        let name = format!("{}, insufficient scope", call.protocol.name());
        let check = |answer: &Answer| {
            has_status(answer, status)?;
            let text = String::from_utf8_lossy(&answer.body);
            let has_scope = text.contains("mail.send");
            has_scope.then_some(()).ok_or_else(|| "no scope".into())
        };
        self.compare("insufficient scope", &name, event, check)
            .await?;
        Some(())
    }
}

fn has_status(answer: &Answer, status: u16) -> Result<(), String> {
    let is_expected = answer.status == status;
    is_expected
        .then_some(())
        .ok_or_else(|| format!("not a {status}"))
}
