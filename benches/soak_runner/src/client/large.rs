//! Large inputs, large outputs, and outputs that are too large to send. At the beginning of a run,
//! those that are sent have the largest size: the function's heap never needs more.

use serde_json::{Value, json};

use super::Client;
use crate::protocol::{Call, Protocol, ToolFailure};

impl Client {
    /// Up to 900 KB.
    pub(super) async fn large_input(&mut self) -> Option<()> {
        let count = self.size(10_000);
        let text = "The quick brown fox jumps over the lazy dog, \"quotes\" included.";
        let record = |id: usize| json!({"id": id, "text": text});
        let records: Vec<_> = (0..count).map(record).collect();
        let call = Call {
            protocol: self.any_protocol(),
            tool: "Load.Count",
            id: self.new_id(),
            input: json!({"client": self.number, "records": records}),
            context: Value::Null,
        };
        let expected = call.value(&json!({
            "client": self.number,
            "records": count,
            "ids": count * (count - 1) / 2,
            "bytes": count * text.len(),
        }));
        let event = call.event(&self.credential());
        self.expect("large input", event, &expected).await?;
        Some(())
    }

    /// Up to 2 MB; one in ten has 8 MB, more than Lambda sends.
    pub(super) async fn large_output(&mut self) -> Option<()> {
        let is_too_large = self.random.u8(..10) == 0 && !self.shared.server.is_local();
        let times = if is_too_large {
            200_000
        } else {
            self.size(50_000)
        };
        let text = format!("A text of client {:>12}, repeated. ", self.number);
        let call = Call {
            protocol: match self.any_protocol() {
                // Lambda limits only the response to an HTTP request in the runtime.
                Protocol::Direct => Protocol::Oxp,
                protocol => protocol,
            },
            tool: "Load.Repeat",
            id: self.new_id(),
            input: json!({"client": self.number, "text": text, "times": times}),
            context: Value::Null,
        };
        let event = call.event(&self.credential());
        if is_too_large {
            let failure = call.failure(&ToolFailure {
                message: "The tool's result is too large to send".into(),
                ..ToolFailure::default()
            });
            let failure = failure.developer_message("");
            self.expect("output too large to send", event, &failure)
                .await?;
        } else {
            let value = json!({"client": self.number, "text": text.repeat(times)});
            let expected = call.value(&value);
            self.expect("large output", event, &expected).await?;
        }
        Some(())
    }

    fn size(&mut self, largest: usize) -> usize {
        if self.is_filling() {
            largest
        } else {
            self.random.usize(1..=largest)
        }
    }
}
