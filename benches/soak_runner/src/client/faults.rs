//! Calls of tools that panic, exceed their time limit, block their thread or leak their secret.

use serde_json::{Value, json};

use super::{Client, MARK, remembered::UNPROTECTED, request::or_store_error};
use crate::{
    answer::Expected,
    protocol::{Call, Protocol, ToolFailure},
};

/// The server's own secret of these tools.
pub(crate) const FAULT_KEY: &str = "marked-fault-key-of-the-server";

impl Client {
    pub(super) async fn fault(&mut self) -> Option<()> {
        let (kind, name) = [
            ("panic", "panic"),
            ("panic_with_secret", "panic with a secret"),
            ("quote", "failure with a secret"),
            ("late_log", "late log line"),
            ("late_panic", "late panic"),
            ("nothing", "no fault"),
        ][self.random.usize(..6)];
        let call = self.fault_call(kind);
        let expected = match kind {
            "panic" | "panic_with_secret" => call.failure(&ToolFailure {
                message: "The tool stopped because of an internal error".into(),
                developer_message: Some("The tool panicked; the log says where.".into()),
                ..ToolFailure::default()
            }),
            "quote" => call.failure(&ToolFailure {
                message: "It does not work".into(),
                developer_message: Some("with [secret]".into()),
                ..ToolFailure::default()
            }),
            _ => call.value(&json!("done")),
        };
        self.faulty(name, &call, &expected).await
    }

    fn fault_call(&mut self, kind: &str) -> Call {
        let protocol = self.any_protocol();
        let has_own = Protocol::WITH_CONTEXT.contains(&protocol) && self.random.bool();
        let own = format!("{MARK}{}-{}", self.number, self.random.u64(..));
        let context = if has_own {
            json!({"secrets": [{"id": "KEY", "value": own}]})
        } else {
            Value::Null
        };
        Call {
            protocol,
            tool: "Fault.Do",
            id: self.new_id(),
            input: json!({"kind": kind}),
            context,
        }
    }

    async fn faulty(&mut self, name: &'static str, call: &Call, expected: &Expected) -> Option<()> {
        let unavailable = call.unavailable(UNPROTECTED);
        let event = call.event(&self.credential());
        let judge = |answer: &_| or_store_error(answer, expected, &unavailable);
        self.send(name, event, judge).await?;
        Some(())
    }

    /// Exceeds the time limit.
    pub(super) async fn hang(&mut self) -> Option<()> {
        let call = Call {
            protocol: self.any_protocol(),
            tool: "Load.Hang",
            id: self.new_id(),
            input: json!({"client": self.number}),
            context: Value::Null,
        };
        let expected = timed_out(&call);
        let event = call.event(&self.credential());
        self.expect("time limit exceeded", event, &expected).await?;
        Some(())
    }

    /// Blocks a thread of its own, beyond the time limit.
    pub(super) async fn blocked_thread(&mut self) -> Option<()> {
        let mut call = self.fault_call("block");
        call.tool = "Fault.Block";
        let expected = timed_out(&call);
        self.faulty("blocked thread", &call, &expected).await
    }
}

/// The failure says after how many milliseconds the tool was stopped.
fn timed_out(call: &Call) -> Expected {
    let failure = call.failure(&ToolFailure {
        message: "The tool did not finish in time".into(),
        can_retry: true,
        ..ToolFailure::default()
    });
    failure.developer_message("The tool was stopped after ")
}
