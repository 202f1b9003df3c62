//! A server with the tools that MCP's conformance suite calls, as far as a server of tools has them.

use lambda_tools::{Content, Context, Error, Failure, Server, ServerInfo, Tool, Toolkit, serve};
use schemars::JsonSchema;
use serde::Deserialize;

/// Needs no parameters.
#[derive(Deserialize, JsonSchema)]
struct Nothing {}

async fn text(_: Nothing) -> Result<String, Failure> {
    Ok("This is a simple text response for testing.".into())
}

async fn fail(_: Nothing) -> Result<(), Failure> {
    Err(Failure::new(
        "This tool intentionally returns an error for testing",
    ))
}

/// A PNG with one pixel.
const PNG: &[u8] = &[
    0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0x00, 0x00, 0x00, 0x0d, 0x49, 0x48, 0x44, 0x52,
    0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x01, 0x08, 0x02, 0x00, 0x00, 0x00, 0x90, 0x77, 0x53,
    0xde, 0x00, 0x00, 0x00, 0x0c, 0x49, 0x44, 0x41, 0x54, 0x08, 0xd7, 0x63, 0xf8, 0xcf, 0xc0, 0x00,
    0x00, 0x03, 0x01, 0x01, 0x00, 0x18, 0xdd, 0x8d, 0xb0, 0x00, 0x00, 0x00, 0x00, 0x49, 0x45, 0x4e,
    0x44, 0xae, 0x42, 0x60, 0x82,
];

/// A WAV file without samples.
const WAV: &[u8] =
    b"RIFF\x24\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0\x40\x1f\0\0\x40\x1f\0\0\x01\0\x08\0data\0\0\0\0";

async fn image(_: Nothing) -> Result<Content, Failure> {
    Ok(Content::bytes("image/png", PNG))
}

async fn audio(_: Nothing) -> Result<Content, Failure> {
    Ok(Content::bytes("audio/wav", WAV))
}

async fn resource(_: Nothing) -> Result<Content, Failure> {
    Ok(Content::text("This is an embedded resource content.").uri("test://embedded-resource"))
}

async fn mixed(_: Nothing) -> Result<Vec<Content>, Failure> {
    Ok(vec![
        Content::text("Multiple content types test:"),
        Content::bytes("image/png", PNG),
        Content::text(r#"{"test":"data","value":123}"#)
            .media_type("application/json")
            .uri("test://mixed-content-resource"),
    ])
}

#[derive(Deserialize, JsonSchema)]
struct Name {
    name: String,
}

#[derive(Deserialize, JsonSchema)]
struct Color {
    color: String,
}

#[derive(Deserialize, JsonSchema)]
struct Confirmation {
    ok: bool,
}

fn declined() -> Failure {
    Failure::new("The user declined to answer")
}

async fn ask(_: Nothing, cx: Context) -> Result<String, Failure> {
    let answer = cx.ask::<Name>("user_name", "What is your name?")?;
    let name = answer.ok_or_else(declined)?.name;
    Ok(format!("Hello, {name}!"))
}

async fn ask_twice(_: Nothing, cx: Context) -> Result<String, Failure> {
    let name = cx.ask::<Name>("step1", "Step 1: What is your name?")?;
    let name = name.ok_or_else(declined)?.name;
    let color = cx.ask::<Color>("step2", "Step 2: What is your favorite color?")?;
    let color = color.ok_or_else(declined)?.color;
    Ok(format!("{name} likes {color}."))
}

async fn confirm(_: Nothing, cx: Context) -> Result<String, Failure> {
    match cx.ask::<Confirmation>("confirm", "Please confirm")? {
        Some(answer) if answer.ok => Ok("state-ok".into()),
        _ => Err(declined()),
    }
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let text = |id, name: &str| Tool::new(id, text).name(name).idempotent();
    let tools = [
        text("Test.SimpleText@1.0.0", "test_simple_text"),
        text(
            "Test.StreamingElicitation@1.0.0",
            "test_streaming_elicitation",
        ),
        text("Test.Logging@1.0.0", "test_logging_tool"),
        Tool::new("Test.ErrorHandling@1.0.0", fail).name("test_error_handling"),
        Tool::new("Test.Image@1.0.0", image).name("test_image_content"),
        Tool::new("Test.Audio@1.0.0", audio).name("test_audio_content"),
        Tool::new("Test.Resource@1.0.0", resource).name("test_embedded_resource"),
        Tool::new("Test.Mixed@1.0.0", mixed).name("test_multiple_content_types"),
        Tool::new("Test.Ask@1.0.0", ask).name("test_input_required_result_elicitation"),
        Tool::new("Test.AskTwice@1.0.0", ask_twice).name("test_input_required_result_multi_round"),
        Tool::new("Test.Confirm@1.0.0", confirm).name("test_input_required_result_request_state"),
        // The state is not signed: the suite notices only that a damaged one is rejected.
        Tool::new("Test.Tampered@1.0.0", confirm).name("test_input_required_result_tampered_state"),
    ];
    let info = ServerInfo::new("Conformance", env!("CARGO_PKG_VERSION"));
    serve(Server::new(Toolkit::new(tools)?).info(info)).await
}
