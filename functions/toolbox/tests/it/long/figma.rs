//! The function whose tools are made from Figma's OpenAPI document. Prism, a mock server, plays Figma.

use serde_json::{Value, json};
use test_support::{built, lambda::calling, prism::Prism, rie::Rie};

#[tokio::test]
#[ignore = "needs what tests/build builds; run .ci/long"]
async fn the_deployed_function_calls_the_api_as_its_document_says() {
    let prism = Prism::start("figma").await;
    let settings = [("API_URL", &*prism.url), ("FIGMA_TOKEN", "figd_token")];
    let function = Rie::start(&built("lambda/figma/bootstrap"), &settings).await;
    let input = json!({"file_key": "abc", "message": "Looks good"});
    let call = json!({"tool_id": "Figma.PostComment", "input": input});
    let answer = function.invoke(&calling(&call, &[])).await;
    let body: Value = serde_json::from_str(answer["body"].as_str().unwrap()).unwrap();
    assert_eq!(body["success"], true, "{body}");
    assert!(body["value"].is_object(), "{body}");
}
