//! A file of tools, made again with the options that made it.

use std::{
    collections::BTreeMap,
    io::{self, Write},
    path::Path,
    process::ExitCode,
};

use clap::Parser;
use serde_json::Value;

use crate::{
    Error,
    args::{Arguments, Command},
    output::shown,
    source,
};

/// Makes a file again, and prints what has changed.
pub(super) fn run(file: &Path, replaces_edited: bool) -> Result<ExitCode, Error> {
    let before = read(file)?;
    let arguments = before["made_with"].as_array().into_iter().flatten();
    let arguments = arguments.map(|it| it.as_str().unwrap_or_default().to_owned());
    let arguments: Vec<_> = arguments.collect();
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
    let code = super::make(&options, arguments)?;
    for line in changes(&tools_in(&before), &tools_in(&read(file)?)) {
        writeln!(io::stdout(), "{}", shown(&line))?;
    }
    Ok(code)
}

fn read(file: &Path) -> Result<Value, Error> {
    let value = serde_json::from_str(&source::read_file(file)?);
    value.map_err(|error| format!("{} is not valid: {error}", file.display()).into())
}

/// Returns the tools of a file, by their ids.
fn tools_in(file: &Value) -> BTreeMap<&str, &Value> {
    let tools = file["tools"].as_array().into_iter().flatten();
    tools
        .map(|it| (it["id"].as_str().unwrap_or_default(), it))
        .collect()
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
