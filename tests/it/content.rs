//! Images, audio, documents and text as output, in every protocol.

use lambda_tools::{Content, Failure, Tool, Toolkit, testing::LambdaFunction};
use schemars::JsonSchema;
use serde_json::json;

use crate::support::{Nothing, function, get, mcp_call, post, value};

async fn all(_: Nothing) -> Result<Vec<Content>, Failure> {
    Ok(vec![
        Content::text("Revenue"),
        Content::text("*Revenue*").media_type("text/markdown"),
        Content::bytes("Image/webp", [1]),
        Content::bytes("audio/wav", [2]),
        Content::bytes("application/pdf", [3]),
        Content::bytes("image/svg+xml", *b"<svg/>").uri("file:///chart.svg"),
    ])
}

/// An object that only looks like content.
#[derive(serde::Serialize, JsonSchema)]
struct Alike {
    media_type: String,
    text: String,
}

async fn alike(_: Nothing) -> Result<Alike, Failure> {
    let (media_type, text) = ("text/plain".into(), "text".into());
    Ok(Alike { media_type, text })
}

fn tools() -> LambdaFunction {
    let pixel = |_: Nothing| async { Ok::<_, Failure>(Content::bytes("image/png", *b"\x89PNG")) };
    let none = |_: Nothing| async { Ok::<_, Failure>(Vec::<Content>::new()) };
    let tools = [
        Tool::new("T.Pixel@1.0.0", pixel).idempotent(),
        Tool::new("T.All@1.0.0", all).idempotent(),
        Tool::new("T.None@1.0.0", none).idempotent(),
        Tool::new("T.Alike@1.0.0", alike).idempotent(),
    ];
    function(Toolkit::new(tools).unwrap())
}

/// In the other protocols, it is content that has a URI alone.
#[tokio::test]
async fn a_link_leads_to_a_resource() {
    async fn link(_: Nothing) -> Result<Content, Failure> {
        Ok(Content::link("shop://orders/7", "text/plain"))
    }

    let function = function(Toolkit::new([Tool::new("T.Link@1.0.0", link).idempotent()]).unwrap());
    let response = mcp_call(&function, "T_Link", json!({})).await;
    let link = json!({"type": "resource_link", "uri": "shop://orders/7", "name": "7",
        "mimeType": "text/plain"});
    assert_eq!(response["result"]["content"], json!([link]));
    let content = json!({"media_type": "text/plain", "uri": "shop://orders/7"});
    assert_eq!(value(&function, "T.Link", json!({})).await, content);
}

#[tokio::test]
async fn mcp_has_a_block_for_each_kind() {
    let response = mcp_call(&tools(), "T_All", json!({})).await;
    let result = &response["result"];
    let expected = json!([
        {"type": "text", "text": "Revenue"},
        {"type": "text", "text": "*Revenue*", "_meta": {"lambda-tools/media-type": "text/markdown"}},
        {"type": "image", "data": "AQ==", "mimeType": "Image/webp"},
        {"type": "audio", "data": "Ag==", "mimeType": "audio/wav"},
        {"type": "resource", "resource": {"uri": "cid:5.00000000%2D0000%2D4000%2D8000%2D000000000000@lambda-tools", "mimeType": "application/pdf",
            "blob": "Aw=="}},
        {"type": "resource", "resource": {"uri": "file:///chart.svg", "mimeType": "image/svg+xml",
            "blob": "PHN2Zy8+"}},
    ]);
    assert_eq!(result["content"], expected);
    assert_eq!(result["isError"], false);
    assert!(result.get("structuredContent").is_none(), "{result}");

    let response = mcp_call(&tools(), "T_None", json!({})).await;
    assert_eq!(response["result"]["content"], json!([]));
    // An object of the same shape is a value.
    let response = mcp_call(&tools(), "T_Alike", json!({})).await;
    let expected = json!({"media_type": "text/plain", "text": "text"});
    assert_eq!(response["result"]["structuredContent"], expected);
}

#[tokio::test]
async fn other_protocols_have_objects() {
    let tools = tools();
    let pixel = json!({"media_type": "image/png", "data": "iVBORw=="});
    assert_eq!(value(&tools, "T.Pixel", json!({})).await, pixel);
    let body = json!({"jsonrpc": "2.0", "id": "1", "method": "T_Pixel", "params": {}});
    let response = post(&tools, "/opentool/call", &[], &body).await;
    assert_eq!(response.body["result"], pixel, "{response:?}");
}

#[tokio::test]
async fn the_lists_describe_content() {
    let list = get(&tools(), "/tools").await;
    let tools = list.body["items"].as_array().unwrap();
    let schema_of = |name: &str| {
        let mut tools = tools.iter();
        &tools.find(|it| it["name"] == name).unwrap()["output_schema"]
    };
    let schema = schema_of("T_Pixel");
    assert_eq!(schema["required"], json!(["media_type"]), "{schema}");
    assert_eq!(schema["properties"]["data"]["contentEncoding"], "base64");
    assert_eq!(&schema_of("T_All")["items"], schema);
}
