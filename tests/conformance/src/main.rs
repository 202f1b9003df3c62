//! A server with what MCP's conformance suite calls and reads.

use std::time::Duration;

use lambda_tools::{
    Content, Context, Error, Failure, Message, Prompt, Resource, Server, ServerInfo, Tool, Toolkit,
    serve,
};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::time::sleep;

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

/// Greets somebody.
#[derive(Deserialize, JsonSchema)]
struct Name {
    /// The name of a person.
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

async fn report(_: Nothing, cx: Context) -> Result<String, Failure> {
    for done in [0, 50, 100] {
        cx.progress(done, 100.0, "");
        sleep(Duration::from_millis(50)).await;
    }
    Ok("Done.".into())
}

async fn greet(Name { name }: Name) -> Result<Content, Failure> {
    Ok(Content::text(format!("Hello, {name}!")))
}

/// Computes for some time.
#[derive(Deserialize, JsonSchema)]
struct Work {
    /// The time it takes.
    seconds: u32,
    /// Any text.
    #[serde(rename = "label")]
    _label: Option<String>,
}

async fn work(Work { seconds, .. }: Work, cx: Context) -> Result<String, Failure> {
    for tenth in 0..seconds * 10 {
        if cx.is_cancelled() {
            return Err(Failure::new("cancelled"));
        }
        cx.progress(f64::from(tenth) / 10.0, f64::from(seconds), "computing");
        sleep(Duration::from_millis(100)).await;
    }
    Ok("done".into())
}

async fn fail_later(_: Nothing) -> Result<String, Failure> {
    sleep(Duration::from_secs(1)).await;
    Err(Failure::new("the job failed"))
}

async fn panic_later(_: Nothing) -> Result<String, Failure> {
    sleep(Duration::from_secs(1)).await;
    panic!("a protocol error");
}

/// Deletes a file.
#[derive(Deserialize, JsonSchema)]
struct Delete {
    /// The name of the file.
    filename: String,
}

async fn confirm_delete(Delete { filename }: Delete, cx: Context) -> Result<String, Failure> {
    match cx.ask::<Confirmation>("confirm", format!("Delete {filename}?"))? {
        Some(answer) if answer.ok => Ok(format!("{filename} is deleted")),
        _ => Err(declined()),
    }
}

async fn ask_then_work(_: Nothing, cx: Context) -> Result<String, Failure> {
    let answer = cx.ask::<Name>("user_name", "What is your name?")?;
    let name = answer.ok_or_else(declined)?.name;
    sleep(Duration::from_secs(1)).await;
    Ok(format!("Hello, {name}!"))
}

/// Returns its argument, which clients repeat in a header.
#[derive(Deserialize, JsonSchema)]
struct InRegion {
    /// A region.
    #[schemars(extend("x-mcp-header" = "Region"))]
    region: String,
}

async fn region(InRegion { region }: InRegion) -> Result<String, Failure> {
    Ok(region)
}

/// Data of something.
#[derive(Deserialize, JsonSchema)]
struct Id {
    /// Its id.
    id: String,
}

async fn data(Id { id }: Id) -> Result<Content, Failure> {
    let data = format!(r#"{{"id":"{id}","templateTest":true,"data":"Data for ID: {id}"}}"#);
    Ok(Content::text(data).media_type("application/json"))
}

async fn simple_prompt(_: Nothing) -> Result<String, Failure> {
    Ok("This is a simple prompt for testing.".into())
}

/// Repeats its arguments.
#[derive(Deserialize, JsonSchema)]
struct Arguments {
    /// The first one.
    arg1: String,
    /// The second one.
    arg2: String,
}

async fn prompt_with_arguments(Arguments { arg1, arg2 }: Arguments) -> Result<String, Failure> {
    Ok(format!(
        "Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"
    ))
}

/// Embeds a resource.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Embedded {
    /// Its URI.
    resource_uri: String,
}

async fn prompt_with_resource(input: Embedded) -> Result<Vec<Message>, Failure> {
    let text = Content::text("Embedded resource content for testing.");
    Ok(vec![
        Message::user(text.uri(input.resource_uri)),
        Message::user("Please process the embedded resource above."),
    ])
}

async fn prompt_with_image(_: Nothing) -> Result<Vec<Message>, Failure> {
    Ok(vec![
        Message::user(Content::bytes("image/png", PNG)),
        Message::user("Please analyze the image above."),
    ])
}

#[derive(Deserialize, JsonSchema)]
struct UserContext {
    context: String,
}

async fn prompt_that_asks(_: Nothing, cx: Context) -> Result<String, Failure> {
    let question = "What context should the prompt use?";
    let answer = cx.ask::<UserContext>("user_context", question)?;
    Ok(answer.ok_or_else(declined)?.context)
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
        Tool::new("Test.Progress@1.0.0", report).name("test_tool_with_progress"),
        Tool::new("Test.Greet@1.0.0", greet).name("greet"),
        Tool::new("Test.SlowCompute@1.0.0", work)
            .name("slow_compute")
            .background(),
        Tool::new("Test.FailingJob@1.0.0", fail_later)
            .name("failing_job")
            .requires_task(),
        Tool::new("Test.MissingCapability@1.0.0", fail_later)
            .name("test_missing_capability")
            .requires_task(),
        Tool::new("Test.ProtocolErrorJob@1.0.0", panic_later)
            .name("protocol_error_job")
            .background(),
        Tool::new("Test.AskThenWork@1.0.0", ask_then_work)
            .name("test_tool_with_task")
            .background(),
        Tool::new("Test.ConfirmDelete@1.0.0", confirm_delete)
            .name("confirm_delete")
            .background(),
        Tool::new("Test.Region@1.0.0", region)
            .name("test_header")
            .idempotent(),
        // The state is not signed: the suite notices only that a damaged one is rejected.
        Tool::new("Test.Tampered@1.0.0", confirm).name("test_input_required_result_tampered_state"),
    ];
    let info = ServerInfo::new("Conformance", env!("CARGO_PKG_VERSION"));
    // The suite expects a task of calls that take a second.
    let resources = [
        Resource::text(
            "test://static-text",
            "static_text",
            "This is the content of the static text resource.",
        ),
        Resource::bytes("test://static-binary", "static_binary", "image/png", PNG),
        Resource::with("test://template/{id}/data", "template_data", data),
    ];
    let prompts = [
        Prompt::new("test_simple_prompt", simple_prompt),
        Prompt::new("test_prompt_with_arguments", prompt_with_arguments),
        Prompt::new("test_prompt_with_embedded_resource", prompt_with_resource),
        Prompt::new("test_prompt_with_image", prompt_with_image),
        Prompt::new("test_input_required_result_prompt", prompt_that_asks),
    ];
    let toolkit = Toolkit::new(tools)?
        .resources(resources)?
        .prompts(prompts)?;
    let server = Server::new(toolkit)
        .tasks(true)
        .task_after(Duration::from_millis(500));
    serve(server.info(info)).await
}
