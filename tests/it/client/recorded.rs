//! The clients' requests, recorded by the local server and replayed as events.

use lambda_tools::{
    client::{
        opentool::FunctionCall,
        oxp::{CallRequest, Dialect},
    },
    secrets::Secrets,
    testing,
};
use serde_json::json;
use test_support::Running;

use crate::tools::{program, server};

#[tokio::test]
async fn recorded_client_requests_can_be_replayed() {
    let folder = std::env::temp_dir().join(format!("clients-{}", std::process::id()));
    let (running, url) = Running::serving(
        program()
            .env("RECORD_EVENTS", &folder)
            .env("TOOLS_SECRETS", "none")
            .env("TOOLS_IDEMPOTENCY", "none"),
    );
    for dialect in [Dialect::Header, Dialect::Schema, Dialect::Otc] {
        let client = super::oxp(&url, super::once()).dialect(dialect);
        client.health().await.unwrap();
        client.tools().await.unwrap();
        for (tool, input) in [
            ("Calculator.Add@1.0.0", json!({"a": 10, "b": 5})),
            ("Calculator.Add", json!({"a": "ten"})),
            ("Doorbell.Ring", json!({"doorbell_id": "doorbell1"})),
            ("No.Such", json!({})),
        ] {
            client
                .call(&CallRequest::new(tool).input(input))
                .await
                .unwrap();
        }
    }
    let client = super::opentool(&url, super::once());
    client.version().await.unwrap();
    client.load().await.unwrap();
    let arguments = json!({"a": 10, "b": 5}).as_object().unwrap().clone();
    for name in ["Calculator_Add", "No_Such"] {
        let call = FunctionCall::new("call-1", name, arguments.clone());
        let _ = client.call(&call).await;
    }
    drop(running);
    let recorded = std::fs::read_dir(&folder).unwrap().count();
    assert_eq!(recorded, 2 * (3 * 6 + 4), "each with its expected response");
    let server = server();
    testing::replay(&folder, server.secrets(Secrets::none())).await;
    std::fs::remove_dir_all(&folder).unwrap();
}
