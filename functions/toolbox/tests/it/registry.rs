//! `server.json` for MCP's registry, as the program prints it, against the registry's schema.

use std::{
    fs,
    process::{Command, Output},
};

use jsonschema::Validator;
use serde_json::{Value, json};

use crate::{
    clients::stdout_of,
    support::{isolated, repository, toolbox},
};

const NAME: &str = "io.github.acme/tools";
const URL: &str = "https://tools.example/mcp";
const DESCRIPTION: &str = "Five tools.";

fn schema() -> Validator {
    let text = fs::read_to_string(repository("tests/spec/mcp-registry/2025-12-11.json")).unwrap();
    let schema = serde_json::from_str(&text).unwrap();
    let options = jsonschema::options().should_validate_formats(true);
    options.build(&schema).unwrap()
}

fn run(arguments: &[&str], settings: &[(&str, &str)]) -> Output {
    let mut program = toolbox();
    program.arg("--server-json").args(arguments);
    program.envs(settings.iter().copied()).output().unwrap()
}

fn entry(settings: &[(&str, &str)]) -> Value {
    let output = run(&[NAME, URL, DESCRIPTION], settings);
    serde_json::from_str(&stdout_of(&output)).unwrap()
}

/// Returns the header of callers with a key.
fn header(is_required: bool) -> Value {
    json!([{
        "name": "Authorization",
        "description": "Bearer, a space, and your API key or JWT",
        "isRequired": is_required,
        "isSecret": true,
    }])
}

#[test]
fn the_entry_matches_the_schema_and_says_how_to_authenticate() {
    let schema = schema();
    let issuer = ("TOOLS_OIDC_ISSUERS", "https://login.example");
    let sign_in = [
        ("TOOLS_AUTH", "sign-in"),
        ("TOOLS_SIGN_IN_PROVIDER", "github"),
        ("TOOLS_SIGN_IN_CLIENT_ID", "id"),
        ("TOOLS_SIGN_IN_ALLOW", "user:ada"),
    ];
    for (settings, headers) in [
        (&[("TOOLS_AUTH", "none")][..], Value::Null),
        (&[("TOOLS_AUTH", "gateway")], Value::Null),
        (&[("TOOLS_AUTH", "oidc"), issuer], Value::Null),
        (&sign_in, Value::Null),
        (&[("TOOLS_AUTH", "api-key")], header(true)),
        (&[("TOOLS_AUTH", "jwt")], header(true)),
        (&[("TOOLS_AUTH", "jwt,oidc"), issuer], header(false)),
    ] {
        let mut remote = json!({"type": "streamable-http", "url": URL});
        if !headers.is_null() {
            remote["headers"] = headers;
        }
        let expected = json!({
            "$schema": "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json",
            "name": NAME,
            "title": "Toolbox",
            "description": DESCRIPTION,
            "version": env!("CARGO_PKG_VERSION"),
            "remotes": [remote],
        });
        let entry = entry(settings);
        assert_eq!(entry, expected, "{settings:?}");
        schema.validate(&entry).unwrap();
    }
}

#[test]
fn names_and_urls_that_the_registry_takes_are_taken() {
    let schema = schema();
    let owner = "a".repeat(187);
    let longest = format!("io.github.{owner}/to");
    assert_eq!(longest.len(), 200);
    for (name, url) in [
        (
            "com.example/to",
            "https://tools.example:8443/stage/agents/mcp/",
        ),
        ("com.example.a-b/x.y_z-1", "https://[2001:db8::1]/mcp"),
        (&longest, URL),
    ] {
        // Characters, not bytes.
        let output = run(&[name, url, &"é".repeat(100)], &[("TOOLS_AUTH", "none")]);
        let entry: Value = serde_json::from_str(&stdout_of(&output)).unwrap();
        schema.validate(&entry).unwrap();
        assert_eq!(
            (&entry["name"], &entry["remotes"][0]["url"]),
            (&json!(name), &json!(url))
        );
    }
}

#[test]
fn each_mistake_is_named_and_nothing_is_printed() {
    let long = "x".repeat(101);
    let long_name = format!("io.github.acme/{}", "x".repeat(186));
    let name = "the name must be";
    let url = "the URL must be";
    let text = "the description must have 1 to 100 characters";
    let mut cases = vec![
        // The toolbox's own description has 107 characters.
        (vec![NAME, URL], text),
        (vec![NAME, URL, ""], text),
        (vec![NAME, URL, " \n"], text),
        (vec![NAME, URL, &long], text),
        (vec![], "its arguments are a name, a URL"),
        (vec![NAME], "its arguments are a name, a URL"),
        (
            vec![NAME, URL, DESCRIPTION, "more"],
            "its arguments are a name, a URL",
        ),
    ];
    for wrong in [
        "",
        "tools",
        "tools/",
        "/tools",
        "acme/tools",
        "io.github.acme/tools/more",
        "io.github.acme/t",
        "io..acme/tools",
        ".io.github.acme/tools",
        "io.github.acme./tools",
        "io.github.a_b/tools",
        "io.github.acme/tools-",
        "io.github.acme/my tools",
        "io.github.acme/to\"ols",
        "io.github.äcme/tools",
        &long_name,
    ] {
        cases.push((vec![wrong, URL, DESCRIPTION], name));
    }
    for wrong in [
        "",
        "tools.example/mcp",
        "http://tools.example/mcp",
        "HTTPS://tools.example/mcp",
        "https:///mcp",
        "https://mcp",
        "https://tools.example",
        "https://tools.example/tools",
        "https://user:password@tools.example/mcp",
        "https://tools.example/mcp?key=1",
        "https://tools.example/mcp#tools",
        "https://{tenant}.tools.example/mcp",
        "https://tools.example/a b/mcp",
        "https://tools.example/mcp\n",
        "https://localhost/mcp",
        "https://LocalHost:8443/mcp",
        "https://a.localhost/mcp",
        "https://127.0.0.1/mcp",
        "https://[::1]/mcp",
    ] {
        cases.push((vec![NAME, wrong, DESCRIPTION], url));
    }
    for (arguments, message) in cases {
        let output = run(&arguments, &[("TOOLS_AUTH", "none")]);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        assert!(
            said.contains(&format!("--server-json: {message}")),
            "{arguments:?}: {said}"
        );
        assert!(output.stdout.is_empty(), "{arguments:?}");
    }
    let output = run(&["a", "b", ""], &[("TOOLS_AUTH", "none")]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        [name, url, text].iter().all(|it| said.contains(it)),
        "{said}"
    );
}

#[test]
fn who_may_call_must_be_decided() {
    for (settings, message) in [
        (&[][..], "no setting says who may call this server"),
        (&[("TOOLS_AUTH", "nobody")], "the value 'nobody' is unknown"),
        (&[("TOOLS_AUTH", "oidc")], "TOOLS_OIDC_ISSUERS"),
    ] {
        let output = run(&[NAME, URL, DESCRIPTION], settings);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1));
        assert!(said.contains(message), "{said}");
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn the_command_of_the_page_prints_an_entry() {
    let page = fs::read_to_string(repository("docs/mcp.md")).unwrap();
    let mut lines = page.lines();
    let line = lines.find(|it| it.contains("-- --server-json ")).unwrap();
    let (command, file) = line.split_once(" > ").unwrap();
    assert_eq!(file, "server.json");
    let command = command.replace("cargo run -q -p toolbox --", "\"$PROGRAM\"");
    let mut shell = isolated(Command::new("sh"));
    shell.env("PROGRAM", toolbox().get_program());
    let output = shell.args(["-c", &command]).output().unwrap();
    let entry: Value = serde_json::from_str(&stdout_of(&output)).unwrap();
    schema().validate(&entry).unwrap();
    assert_eq!(entry["remotes"][0]["headers"], header(true));
}
