//! The pictures of the documentation: what the programs show in Chromium, and Claude Code at a
//! terminal.
//!
//! Next to each picture is a text that says what it shows. The test makes the same views again and
//! compares these texts, because the pixels differ with the machine's fonts. `tests/pictures` runs it
//! to write the texts, and makes the pictures of its screenshots.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsStr,
    fs,
    process::Command,
};

use axum::{Router, http::HeaderMap, routing::get};
use serde_json::json;
use test_support::{Served, answer, chromium, openid::OpenId};

use crate::{
    claude_code::{ClaudeCode, played_model},
    clients::stdout_of,
    mcp_clients::limited,
    support::{Running, figma, installed, repository, toolbox},
};

/// The picture of Claude Code at a terminal.
const TERMINAL: &str = "agent";

/// Returns a toolbox whose users sign in at this provider.
fn signing_in(openid: &OpenId) -> Command {
    let mut command = toolbox();
    command.envs([
        ("TOOLS_AUTH", "sign-in"),
        ("TOOLS_OAUTH_KEY", "a-key-of-this-server-0123456789abcdef"),
        ("TOOLS_SIGN_IN_PROVIDER", "google"),
        ("TOOLS_SIGN_IN_ISSUER", &openid.url),
        ("TOOLS_SIGN_IN_CLIENT_ID", "toolbox"),
        ("TOOLS_SIGN_IN_CLIENT_SECRET", "toolbox-secret"),
        ("TOOLS_SIGN_IN_ALLOW", "anyone"),
    ]);
    command
}

const FIGMA_TOKEN: &str = "figd_token";

/// Plays the operation of Figma's API that a picture shows, as Figma's document describes it.
async fn figma_api() -> Served {
    let file =
        json!({"key": "kQ3vXw7LpZ", "name": "Home page", "last_modified": "2026-03-02T09:30:00Z"});
    let project = json!({"name": "Website", "files": [file]}).to_string();
    let files = get(|headers: HeaderMap| async move {
        let is_allowed = headers
            .get("x-figma-token")
            .is_some_and(|it| it == FIGMA_TOKEN);
        let status = if is_allowed { 200 } else { 403 };
        answer(status, &[("content-type", "application/json")], project)
    });
    Served::start(Router::new().route("/v1/projects/31415926/files", files)).await
}

/// Returns what each view shows, and saves its screenshot.
async fn views() -> BTreeMap<String, String> {
    let api = figma_api().await;
    let variables = [("API_URL", &*api.url), ("FIGMA_TOKEN", FIGMA_TOKEN)];
    let (_of_api, of_api) = Running::serving(figma().envs(variables));
    let openid = OpenId::start();
    let (_open, open) = Running::serving(toolbox().envs(openid.variables()));
    let (_signed, signed) = Running::serving(&mut signing_in(&openid));
    let artifacts = repository("target/artifacts");
    fs::create_dir_all(&artifacts).unwrap();
    let settings = json!({
        "figma": of_api, "toolbox": open, "signed": signed,
        "artifacts": artifacts.canonicalize().unwrap(),
    });
    let shown = chromium("pictures.mjs", &[settings.to_string()]).await;
    serde_json::from_value(shown).unwrap()
}

/// Compares what is shown with the text of a picture, or writes the text.
fn check(name: &str, shown: &str) {
    let path = repository("docs/images").join(format!("{name}.txt"));
    if std::env::var_os("UPDATE_EXPECTED").is_some() {
        fs::write(path, shown).unwrap();
        return;
    }
    let expected = fs::read_to_string(path).unwrap();
    assert_eq!(
        shown, expected,
        "the picture {name} is out of date: tests/pictures makes it again"
    );
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Chromium and npm's oidc-provider; run tests/all"]
async fn the_programs_show_what_the_pictures_show() {
    let views = views().await;
    for (name, shown) in &views {
        check(name, shown);
    }
    let files = fs::read_dir(repository("docs/images")).unwrap();
    let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    let texts = names.filter_map(|name| Some(name.strip_suffix(".txt")?.to_owned()));
    let texts: BTreeSet<_> = texts.filter(|name| name != TERMINAL).collect();
    assert_eq!(texts, views.into_keys().collect());
}

/// Returns a command of Claude Code's user, whose model is played.
fn command_of(claude: &ClaudeCode, program: impl AsRef<OsStr>, model: &Served) -> Command {
    let folder = claude.home.join("my-tools");
    fs::create_dir_all(&folder).unwrap();
    let mut command = limited(program);
    claude.prepare(&mut command);
    command.current_dir(folder);
    command.env("TERM", "xterm-256color").env("LANG", "C.UTF-8");
    command.env("ANTHROPIC_BASE_URL", &model.url);
    command.env("ANTHROPIC_API_KEY", "any");
    command
}

/// Writes the answers to what Claude Code asks at its first start.
fn answer_first_questions(claude: &ClaudeCode) {
    let folder = claude.home.join("my-tools");
    let settings = json!({
        "hasCompletedOnboarding": true,
        "customApiKeyResponses": {"approved": ["any"], "rejected": []},
        "projects": {&*folder.to_string_lossy(): {"hasTrustDialogAccepted": true}},
    });
    fs::write(claude.home.join(".claude.json"), settings.to_string()).unwrap();
}

/// The model is played, as in `claude_code`.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs npm's Claude Code and pyte of PyPI; run tests/all"]
async fn claude_code_shows_what_its_picture_shows() {
    let (_running, url) = Running::serving(&mut toolbox());
    let claude = ClaudeCode::new("picture");
    answer_first_questions(&claude);
    let input = json!({"a": 19.5, "b": 22.5});
    let model = played_model("mcp__tools__Calculator_Add".into(), input).await;
    let output_of = |program: &OsStr, arguments: &[&str]| {
        let mut command = command_of(&claude, program, &model);
        command.args(arguments);
        stdout_of(&tokio::task::block_in_place(|| command.output()).unwrap())
    };
    let url = format!("{url}/mcp");
    let add = ["mcp", "add", "--transport", "http", "tools", &url];
    output_of("claude".as_ref(), &add);
    let script = repository("functions/toolbox/tests/claude_terminal.py");
    let arguments = [&*script.to_string_lossy(), "What is 19.5 + 22.5?"];
    let screens = output_of(installed("python").as_ref(), &arguments);
    let screens: Vec<Vec<String>> = serde_json::from_str(&screens).unwrap();
    let screens = screens.iter().map(|lines| lines.join("\n") + "\n");
    check(TERMINAL, &screens.collect::<Vec<_>>().join("\n\n"));
}
