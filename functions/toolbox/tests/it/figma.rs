//! The function whose tools are made from Figma's OpenAPI document. Prism, a mock server, plays Figma.

use std::time::Duration;

use serde_json::{Value, json};
use test_support::{
    lambda::{event, invoke_on},
    prism::Prism,
};

use crate::support::figma;

#[tokio::test]
#[ignore = "needs what tests/all builds"]
async fn the_deployed_function_calls_the_api_as_its_document_says() {
    let prism = Prism::start("figma");
    let calls = [
        ("Figma.GetFileMeta", json!({"file_key": "abc"})),
        (
            "Figma.GetComments",
            json!({"file_key": "abc", "as_md": true}),
        ),
        (
            "Figma.PostComment",
            json!({"file_key": "abc", "message": "Looks good"}),
        ),
        ("Figma.GetProjectFiles", json!({"project_id": "1"})),
        ("Figma.GetMe", json!({})),
    ];
    let limit = Some(Duration::from_secs(20));
    let events = calls.iter().map(|(tool, input)| {
        let mut event = event("calculator/add.header-form");
        event["body"] = json!({"tool_id": tool, "input": input}).to_string().into();
        (event, limit)
    });
    let events: Vec<_> = events.collect();
    let environment = [
        ("API_URL", &*prism.url),
        ("FIGMA_TOKEN", "figd_token"),
        ("TOOLS_AUTH", "none"),
    ];
    let (reports, _) = invoke_on(&mut figma(), &events, &environment).await;
    for (report, (tool, _)) in reports.iter().zip(&calls) {
        let body: Value = serde_json::from_str(report.1["body"].as_str().unwrap()).unwrap();
        assert_eq!(body["success"], true, "{tool}: {body}");
        assert!(body["value"].is_object(), "{tool}: {body}");
    }
}
