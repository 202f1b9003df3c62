//! Calls that succeed or fail at once, and leave nothing behind.

use serde_json::{Value, json};

use super::{Client, MARK};
use crate::protocol::{Call, Protocol, ToolFailure};

impl Client {
    /// A call of one of the tools without effects, in any protocol.
    pub(super) async fn call(&mut self) -> Option<()> {
        match self.random.u8(..10) {
            0 | 1 => self.whose().await,
            2 => self.overflow().await,
            _ => self.add().await,
        }
    }

    async fn add(&mut self) -> Option<()> {
        let (a, b) = (self.random.i64(-9999..9999), self.random.i64(..1 << 50));
        let call = Call {
            protocol: self.any_protocol(),
            tool: "Load.Add",
            id: self.new_id(),
            input: json!({"client": self.number, "a": a, "b": b}),
            context: Value::Null,
        };
        let expected = call.value(&json!({"client": self.number, "sum": a + b}));
        let event = call.event(&self.credential());
        self.expect(call.protocol.name(), event, &expected).await?;
        Some(())
    }

    /// The user of a token in any protocol, and of an API key's calls if the protocol has a context.
    async fn whose(&mut self) -> Option<()> {
        let names_user = self.key().is_some();
        let user = if names_user {
            format!("user-{}", self.random.u32(..))
        } else {
            self.user()
        };
        let protocol = loop {
            let protocol = self.any_protocol();
            let has_context = Protocol::WITH_CONTEXT.contains(&protocol);
            if has_context || !names_user && protocol != Protocol::Direct {
                break protocol;
            }
        };
        let context = if names_user {
            json!({"user_id": user})
        } else {
            Value::Null
        };
        let call = Call {
            protocol,
            tool: "Load.Whose",
            id: self.new_id(),
            input: json!({"client": self.number}),
            context,
        };
        let expected = call.value(&json!({"client": self.number, "user": user}));
        let event = call.event(&self.credential());
        self.expect("user of a call", event, &expected).await?;
        Some(())
    }

    /// A failure that depends on the input.
    async fn overflow(&mut self) -> Option<()> {
        let call = Call {
            protocol: self.any_protocol(),
            tool: "Load.Add",
            id: self.new_id(),
            input: json!({"client": self.number, "a": i64::MAX, "b": 1}),
            context: Value::Null,
        };
        let expected = call.failure(&ToolFailure {
            message: "The sum is too large".into(),
            ..ToolFailure::default()
        });
        let event = call.event(&self.credential());
        self.expect("failure", event, &expected).await?;
        Some(())
    }

    /// A secret of the call, or the server's own.
    pub(super) async fn secret(&mut self) -> Option<()> {
        let protocol = self.any_protocol();
        let own = format!("{MARK}{}-{}", self.number, self.random.u64(..));
        let has_own = Protocol::WITH_CONTEXT.contains(&protocol) && self.random.bool();
        let (secret, context) = if has_own {
            let secrets = json!({"secrets": [{"id": "LOAD_KEY", "value": own}]});
            (&*own, secrets)
        } else {
            (LOAD_KEY, Value::Null)
        };
        let call = Call {
            protocol,
            tool: "Load.Describe",
            id: self.new_id(),
            input: json!({"client": self.number}),
            context,
        };
        let sum: u64 = secret.bytes().map(u64::from).sum();
        let value = json!({"client": self.number, "length": secret.len(), "sum": sum});
        let expected = call.value(&value);
        let event = call.event(&self.credential());
        self.expect("secret", event, &expected).await?;
        Some(())
    }
}

/// The server's own secret of the tool.
pub(crate) const LOAD_KEY: &str = "marked-load-key-of-the-server";
