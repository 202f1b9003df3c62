//! Tests of what is logged.

use serde_json::{Value, json};
use test_support::lines::Lines;

use crate::{Failure, Tool, Toolkit};

#[test]
fn a_token_without_a_user_is_a_warning() {
    async fn read(_: Value) -> Result<Value, Failure> {
        Ok(Value::Null)
    }
    let tool = |id: &'static str| {
        let tool = Tool::dynamic(id, "Reads.", json!({"type": "object"}), json!({}), read);
        tool.authorization("google", ["mail"])
    };
    let tools = [tool("Mail.Any@1.0.0"), tool("Mail.Own@1.0.0").user_id()];
    let toolkit = Toolkit::new(tools).unwrap();
    let lines = Lines::default();
    let subscriber = tracing_subscriber::fmt()
        .with_writer(lines.clone())
        .finish();
    tracing::subscriber::with_default(subscriber, || toolkit.check().unwrap());
    let log = lines.text();
    assert!(
        log.contains("WARN") && log.contains("Mail.Any@1.0.0"),
        "{log}"
    );
    assert!(!log.contains("Mail.Own"), "{log}");
}
