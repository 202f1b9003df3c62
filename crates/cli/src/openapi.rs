//! `lambda-tools openapi`: from an OpenAPI document to a file of tools.

mod update;

use std::{
    env, fs,
    io::{self, BufWriter, Write},
    path::Path,
    process::ExitCode,
};

use lambda_tools::{
    Toolkit,
    from_openapi::{ApiTools, Reduction},
};

use crate::{
    Error,
    api::{Api, advised},
    args::Options,
    output::{self, say, typed},
    parse, source, summary,
};

/// Runs the command.
pub(crate) fn run(options: &Options) -> Result<ExitCode, Error> {
    let results = &options.results;
    if let Some(file) = &results.update {
        return update::run(file, results.force);
    }
    make(options, env::args().skip(2).map(source::without_secrets))
}

/// Makes tools of a document. The file keeps the arguments, so that an owner can update it.
fn make(options: &Options, arguments: impl IntoIterator<Item = String>) -> Result<ExitCode, Error> {
    let mut stdout = BufWriter::new(io::stdout().lock());
    let results = &options.results;
    let source = options.document.as_deref().unwrap_or_default();
    let api = Api::new(source, parse::read(source)?, &options.conversion)?;
    if !api.openapi.has_choice() {
        let end = results.output.as_ref().map_or(" -o tools.json", |_| "");
        summary::groups(&api.openapi.tags(), end, &mut stdout)?;
        stdout.flush()?;
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
    summary::print(&tools, &report, results.output.is_none(), &mut stdout)?;
    stdout.flush()?;
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
