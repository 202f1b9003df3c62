//! `lambda-tools check`: what agents' clients do with a server of MCP, step by step.
//!
//! A client says only that it could not connect. Here, each step collects facts about the server, and
//! the rules in `check/rules.yaml` test them and name the cure of each fault.

mod client;
mod discovery;
mod mcp;
mod sign_in;

use std::{collections::HashMap, fmt::Write, process::ExitCode};

use serde::Deserialize;
use serde_json::{Value, json};

use crate::{Error, args::Server, output, source};
use client::Client;

/// Collects facts about the server; null if it does not apply to this one.
type Step = fn(&mut Client) -> Result<Value, Error>;

/// The steps, in the order in which clients take them.
const STEPS: &[(&str, Step)] = &[
    ("URL", mcp::url),
    ("first request", mcp::first_request),
    ("resource metadata", discovery::resource),
    ("authorization server", discovery::authorization_server),
    ("browsers", discovery::browsers),
    ("sign-in", sign_in::sign_in),
    ("protocol", mcp::protocol),
    ("tools", mcp::tools),
    ("resources and prompts", mcp::others),
    ("call", mcp::call),
    ("latency", mcp::latency),
];

/// A rule for the facts that a step collects.
#[derive(Deserialize)]
struct Rule {
    /// `FAULT`, `warn`, or, for what there is to say if no other rule is broken, `ok`.
    severity: String,
    /// A JSON Schema for the facts.
    must: Value,
    /// The message. A JSON Pointer in braces is replaced by the fact at that location, and `{at}` by the
    /// location of the fact that breaks the rule.
    text: String,
    cure: Option<String>,
    /// True if no further step can be taken.
    ends: Option<bool>,
}

/// Runs the command; it fails if an agent would.
pub(crate) fn run(server: Server) -> Result<ExitCode, Error> {
    let rules = include_str!("check/rules.yaml");
    let rules: HashMap<String, Vec<Rule>> = serde_saphyr::from_str(rules)?;
    let url = source::without_secrets(server.url.to_string());
    let mut client = Client::new(server)?;
    let version = env!("CARGO_PKG_VERSION");
    let mut report = format!("\n| {url} | `lambda-tools check` {version} |\n| --- | --- |\n");
    let mut is_usable = true;
    'steps: for (step, collect) in STEPS {
        let facts = collect(&mut client);
        let facts = facts.unwrap_or_else(|why| json!({"error": source::causes(&*why)}));
        let mut is_fine = true;
        for rule in rules.get(*step).into_iter().flatten() {
            let validator = jsonschema::validator_for(&rule.must)?;
            let severity = &*rule.severity;
            let mut errors = validator.iter_errors(&facts);
            let Some(error) = errors.next().filter(|_| is_fine || severity != "ok") else {
                continue;
            };
            is_fine = false;
            is_usable &= severity != "FAULT";
            let text = explained(&rule.text, &facts, error.instance_path().as_str());
            output::print(&format!("{severity:5} {step}: {text}"));
            let cure = rule.cure.iter();
            cure.for_each(|it| output::print(&format!("      {it}")));
            let text = text.replace('|', "\\|");
            _ = writeln!(report, "| {step} | {severity}: {text} |");
            if rule.ends == Some(true) {
                break 'steps;
            }
        }
        client.known[step] = facts;
    }
    report.lines().for_each(output::print);
    Ok(ExitCode::from(u8::from(!is_usable)))
}

/// Returns a text with facts, which may come from the server.
fn explained(text: &str, facts: &Value, place: &str) -> String {
    let parts = text.split(['{', '}']).enumerate();
    let parts = parts.map(|(index, part)| match facts.pointer(part) {
        _ if index % 2 == 0 => part.to_owned(),
        Some(fact) => quoted(fact.as_str().unwrap_or(&fact.to_string())),
        None if part == "at" => quoted(place),
        None => "nothing".to_owned(),
    });
    parts.collect()
}

/// Returns the beginning of a text, on one line.
fn quoted(text: &str) -> String {
    let beginning: String = text.chars().take(200).collect();
    format!("`{}`", output::shown(&beginning).replace('`', "'"))
}
