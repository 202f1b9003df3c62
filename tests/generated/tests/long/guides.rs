//! From an OpenAPI document to a deployed function whose users sign in, and from a Rust function to an
//! agent that calls it on Lambda, by the commands of docs/guide-api.md and docs/guide-tool.md.

use std::{fs, process::Command};

use axum::{
    Router,
    http::{HeaderMap, Uri},
    routing::get,
};
use serde_json::{Value, json};
use test_support::{
    Running, Served,
    documents::{Block, blocks},
    installed, isolated, node,
    programs::Prism,
    repository,
};

use super::{
    Project,
    deployment::{self, Account},
    parent_without, stdout_of,
};
use crate::terminal::Terminal;

const API_PAGE: &str = "docs/guide-api.md";

/// Returns the URL of the document on the page: that of the package whose document is tested.
fn url_of_document() -> String {
    let package = fs::read_to_string(repository("tests/openapi/package.json")).unwrap();
    let package: Value = serde_json::from_str(&package).unwrap();
    let name = "@figma/rest-api-spec";
    let version = package["dependencies"][name].as_str().unwrap();
    format!("https://cdn.jsdelivr.net/npm/{name}@{version}/openapi/openapi.yaml")
}

/// Starts a server that plays GitHub, with the OAuth app `toolbox`; returns its URL, too.
fn played_github() -> (Running, String) {
    let mut command = Command::new(node());
    command.arg(repository("target/openid/fake_github.mjs"));
    let running = Running::start(&mut command);
    let url = running.url_after("Serving GitHub on");
    (running, url)
}

/// Signs a member of the organization in at a server, with nothing but its URL, and checks a call.
fn signs_in_and_calls(terminal: &mut Terminal, github: &str, server: &str) {
    let callback = format!("{server}/authorization/github/callback");
    let allows = format!("{github}/test/redirect_uri");
    let curl = format!("curl -G --data-urlencode 'uri={callback}' {allows}");
    terminal.type_line(&curl);
    let mut client = Command::new(installed("python"));
    client.arg(repository("functions/toolbox/tests/mcp_oauth.py"));
    client.args([&format!("{server}/mcp"), "alice"]);
    client.args(["--tool", "Figma_GetComments"]);
    client.args(["--arguments", r#"{"file_key": "abc"}"#]);
    let seen: Value = serde_json::from_str(&stdout_of(&mut client)).unwrap();
    let comments = &seen["call"]["value"]["result"]["comments"];
    assert!(comments.is_array(), "{seen:#}");
}

/// Returns the parameters of the command that deploys.
fn parameters(terminal: &mut Terminal, block: &Block) -> Vec<(String, String)> {
    let (_, words) = block.text.split_once("--parameter-overrides ").unwrap();
    let values = terminal.type_line(&format!("printf '%s\\n' {words}"));
    let values = values.lines().map(|line| line.split_once('=').unwrap());
    values
        .map(|(name, it)| (name.to_owned(), it.to_owned()))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Prism, moto, the AWS CLI, Claude Code and ten minutes; run .ci/long"]
async fn the_commands_of_the_guide_end_in_calls_of_users_who_have_signed_in() {
    let parent = parent_without("figma-tools");
    let document = "target/openapi-tools/node_modules/@figma/rest-api-spec/openapi/openapi.yaml";
    let document = repository(document).canonicalize().unwrap();
    let prism = Prism::start("figma").await;
    let (_running, github) = played_github();
    let mut terminal = Terminal::open(&parent, "");
    terminal.set("API_URL", &prism.url);
    terminal.set("TOOLS_SIGN_IN_ISSUER", &github);
    terminal.replace(&url_of_document(), document.to_str().unwrap());
    terminal.replace("YOUR_CLIENT_ID", "toolbox");
    terminal.replace("YOUR_CLIENT_SECRET", "toolbox-secret");
    let installed = parent.join("installed");
    terminal.set("CARGO_INSTALL_ROOT", installed.to_str().unwrap());
    terminal.add_to_path(&installed.join("bin"));
    let page = fs::read_to_string(repository(API_PAGE)).unwrap();
    assert!(page.contains(&url_of_document()), "{API_PAGE}");
    let blocks = blocks(API_PAGE, &page);
    let position = |text: &str| blocks.iter().position(|it| it.text.contains(text)).unwrap();
    let deploy = position("sam deploy --stack-name");

    let typed = terminal.type_blocks(&blocks[..deploy]);
    assert!(typed.iter().any(|(line, _)| line.starts_with("claude ")));
    let server = terminal.url().to_owned();
    signs_in_and_calls(&mut terminal, &github, &server);

    let account = Account::open(&mut terminal).await;
    let secrets = blocks[deploy].text.lines();
    for line in secrets.filter(|it| it.starts_with("aws secretsmanager")) {
        terminal.type_line(line);
    }
    let given = parameters(&mut terminal, &blocks[deploy]);
    let given: Vec<_> = given.iter().map(|(name, it)| (&**name, &**it)).collect();
    let others = [("API_URL", &*prism.url), ("TOOLS_SIGN_IN_ISSUER", &*github)];
    let mut program = isolated(Command::new(terminal.folder().join("bootstrap")));
    let function = account.deploy(&mut terminal, &mut program, &given, &others);
    let function = function.await;
    terminal.type_blocks(&blocks[deploy + 1..]);
    signs_in_and_calls(&mut terminal, &github, &function.url);
    let line = function.line_with(r#""tool":"Figma.GetComments""#, 5).await;
    assert!(line.contains(r#""outcome":"success""#), "{line}");
}

const TOOL_PAGE: &str = "docs/guide-tool.md";

/// Starts a server that plays NASA's API, for the key `DEMO_KEY`.
async fn played_nasa() -> Served {
    let picture = async |headers: HeaderMap, uri: Uri| {
        assert_eq!(headers["x-api-key"], "DEMO_KEY");
        assert_eq!(uri.query(), Some("date=2024-05-05"));
        let picture = json!({
            "title": "A Galaxy", "explanation": "It has stars.", "media_type": "image",
        });
        picture.to_string()
    };
    Served::start(Router::new().route("/planetary/apod", get(picture))).await
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs cargo-lambda, moto, the AWS CLI, Claude Code and five minutes; run .ci/long"]
async fn the_commands_of_the_guide_end_in_an_agent_that_reaches_the_deployed_tool() {
    let nasa = played_nasa().await;
    let parent = parent_without("my-tools");
    let mut terminal = Terminal::open(&parent.join("lambda_tools"), "");
    terminal.set("NASA_URL", &nasa.url);
    let account = Account::open(&mut terminal).await;
    let page = fs::read_to_string(repository(TOOL_PAGE)).unwrap();
    let blocks = blocks(TOOL_PAGE, &page);
    let deploys = |text: &str| text.contains("sam deploy");
    let deploy = blocks.iter().position(|it| deploys(&it.text)).unwrap();
    let reads_log = |text: &str| text.contains("aws logs filter");
    let read = blocks.iter().position(|it| reads_log(&it.text)).unwrap();

    terminal.type_blocks(&blocks[..deploy]);
    let test = "src/tests.rs";
    let project = parent.join("my-tools");
    let tests = fs::read_to_string(project.join(test)).unwrap();
    let secret = r#"("NASA_KEY", "VALUE_OF_NASA_KEY")"#;
    assert!(tests.contains(secret), "{tests}");
    let recorded = "events/0001-post-tools-call-Nasa-FindPicture.expected.json";
    let recorded = fs::read_to_string(project.join(recorded)).unwrap();
    assert!(recorded.contains("A Black Hole"), "{recorded}");

    let others = [("NASA_URL", &*nasa.url)];
    let mut program = Project::at(project).program();
    let function = account.deploy(&mut terminal, &mut program, &[], &others);
    let function = function.await;
    terminal.type_blocks(&blocks[deploy + 1..read]);
    let line = function.line_with(r#""tool":"Nasa.FindPicture""#, 5).await;
    deployment::log(&mut terminal, &line);
    terminal.type_blocks(&blocks[read..]);
}
