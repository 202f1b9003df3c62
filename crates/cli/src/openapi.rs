//! `lambda-tools openapi`: from an OpenAPI document to a file of tools.

use std::{collections::BTreeMap, env, fs, path::Path, process::ExitCode};

use clap::Parser;
use lambda_tools::{
    Toolkit,
    from_openapi::{ApiTools, Reduction},
};
use serde::Deserialize;
use serde_json::Value;

use crate::{
    Error,
    api::{Api, advised},
    args::{Arguments, Command, Options},
    output::{self, say, typed},
    parse, source, summary,
};

/// Runs the command.
pub(crate) fn run(options: &Options) -> Result<ExitCode, Error> {
    let results = &options.results;
    if let Some(file) = &results.update {
        return update(file, results.force);
    }
    make(options, env::args().skip(2).map(source::without_secrets))
}

/// Makes tools of a document. The file keeps the arguments, so that an owner can update it.
fn make(options: &Options, arguments: impl IntoIterator<Item = String>) -> Result<ExitCode, Error> {
    let results = &options.results;
    let source = options.document.as_deref().unwrap_or_default();
    let api = Api::new(source, parse::read(source)?, &options.conversion)?;
    if !api.openapi.has_choice() {
        let end = results.output.as_ref().map_or(" -o tools.json", |_| "");
        summary::groups(&api.openapi.tags(), end);
        return Ok(ExitCode::SUCCESS);
    }
    let Reduction { tools, report, .. } = api.reduce()?;
    // A server would fail at start-up with the same error.
    Toolkit::new(tools.clone().tools().map_err(|error| advised(&error, ""))?)?;
    let tools = tools.made_with(arguments);
    if let Some(file) = &results.output {
        save(&tools, file, results.force)?;
    }
    match &results.report {
        Some(file) => output::write(file, summary::lines(&report).as_bytes())?,
        None => summary::excerpt(&report).iter().for_each(|line| say(line)),
    }
    summary::print(&tools, &report, results.output.is_none());
    Ok(ExitCode::SUCCESS)
}

fn save(tools: &ApiTools, file: &Path, replaces_edited: bool) -> Result<(), Error> {
    // A pipe has no end.
    let text = file.is_file().then(|| fs::read_to_string(file));
    let text = text.and_then(Result::ok).filter(|it| !it.is_empty());
    if !replaces_edited && text.is_some_and(|it| ApiTools::is_edited(&it)) {
        let text = format!(
            "{} has been edited: write to another file, and compare them; or replace it:\n  {} --force",
            file.display(),
            typed()
        );
        return Err(text.into());
    }
    output::write(file, tools.to_json().as_bytes())
}

/// Makes a file again with the options that made it, and prints what has changed.
fn update(file: &Path, replaces_edited: bool) -> Result<ExitCode, Error> {
    let source = file.to_string_lossy();
    let before = parse::read(&source)?;
    let arguments = Vec::<String>::deserialize(&before["made_with"]).unwrap_or_default();
    let words = arguments.iter().map(String::as_str);
    let words = ["lambda-tools", "openapi"].into_iter().chain(words);
    let parsed = Arguments::try_parse_from(words).map(|it| it.command);
    let Ok(Command::Openapi(mut options)) = parsed else {
        let file = file.display();
        return Err(format!("{file} does not say which options made it: make it with -o").into());
    };
    // The file says what to read, but not what to write.
    options.results.output = Some(file.to_owned());
    options.results.report = None;
    options.results.force = replaces_edited;
    let code = make(&options, arguments)?;
    for line in changes(&tools_in(&before), &tools_in(&parse::read(&source)?)) {
        output::print(&line);
    }
    Ok(code)
}

/// Returns the tools of a file, by their ids.
fn tools_in(file: &Value) -> BTreeMap<&str, &Value> {
    let tools = file["tools"].as_array().into_iter().flatten();
    let tools = tools.map(|it| (it["id"].as_str().unwrap_or_default(), it));
    tools.collect()
}

/// Returns a line for each tool that was added, removed or changed.
fn changes(before: &BTreeMap<&str, &Value>, after: &BTreeMap<&str, &Value>) -> Vec<String> {
    let removed = before.keys().filter(|id| !after.contains_key(*id));
    let removed = removed.map(|id| format!("removed  {id}"));
    let others = after.iter().filter_map(|(id, tool)| match before.get(id) {
        None => Some(format!("added    {id}")),
        Some(old) => (old != tool).then(|| format!("changed  {id}")),
    });
    removed.chain(others).collect()
}
