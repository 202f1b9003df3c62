//! `lambda-tools openapi`: from an OpenAPI document to a file of tools, or to a project.
//!
//! The library converts; this module reads, writes and reports the result.

use std::{
    env, fs,
    io::{self, BufWriter, Write},
    process::ExitCode,
};

use lambda_tools_core::Toolkit;
use lambda_tools_openapi::{ApiTools, OpenApi, Reduction};
use serde_json::Value;

use crate::{
    Error,
    args::{Access, Changes, Choice, Options},
    output::{self, say},
    overlay, parse, project, source, summary,
};

/// Runs the command.
pub(crate) fn run(options: &Options) -> Result<ExitCode, Error> {
    let mut stdout = BufWriter::new(io::stdout().lock());
    let api = OpenApi::new(document(&options.document, &options.changes.overlay)?)?;
    let api = when(source::is_url(&options.document), api, |api| {
        api.document_url(&options.document)
    });
    let api = chosen(api, &options.choice);
    if !api.has_choice() {
        summary::groups(&api.tags(), &options.document, &mut stdout)?;
        stdout.flush()?;
        return Ok(ExitCode::SUCCESS);
    }
    let api = reached(changed(api, &options.changes), &options.access);
    let Reduction { tools, report, .. } = api.reduce()?;
    // The generated program would fail at start-up with the same error.
    Toolkit::new(tools.clone().tools()?)?;
    // An owner can run the same command on a newer document.
    let tools = tools.made_with(env::args().skip(2).map(source::without_secrets));
    save(&tools, options)?;
    match &options.results.report {
        Some(file) => output::write(file, &summary::lines(&report))?,
        None => summary::excerpt(&report).iter().for_each(|line| say(line)),
    }
    let is_saved = options.results.output.is_some() || options.project.new.is_some();
    summary::print(&tools, &report, !is_saved, &mut stdout)?;
    stdout.flush()?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the document, with the Overlays applied.
fn document(source: &str, overlays: &[String]) -> Result<Value, Error> {
    let mut document = parse::read(source)?;
    for file in overlays {
        let warnings = overlay::apply(parse::read(file)?, &mut document);
        for warning in warnings.map_err(|error| format!("{file}: {error}"))? {
            say(&format!("warning: {file}: {warning}"));
        }
    }
    Ok(document)
}

fn chosen(api: OpenApi, choice: &Choice) -> OpenApi {
    let api = api
        .include_tags(&choice.include_tag)
        .include_operations(&choice.include_operation)
        .include_paths(&choice.include_path)
        .include_methods(&choice.include_method)
        .exclude(&choice.exclude);
    let api = when(choice.all, api, OpenApi::include_all);
    let api = when(choice.searchable, api, OpenApi::searchable);
    when(choice.list_all, api, OpenApi::list_all)
}

fn changed(api: OpenApi, changes: &Changes) -> OpenApi {
    let api = changes.toolkit.iter().fold(api, OpenApi::toolkit);
    let version = changes.tool_version.iter().map(ToString::to_string);
    let api = version.fold(api, OpenApi::tool_version);
    let api = each(api, &changes.rename, |api, (id, it)| api.rename(id, it));
    let api = each(api, &changes.describe, |api, (id, it)| api.describe(id, it));
    let api = each(api, &changes.fix, |api, it| {
        api.fix(&it.operation, &it.parameter, it.value.clone())
    });
    api.reads(&changes.reads)
}

fn reached(api: OpenApi, access: &Access) -> OpenApi {
    let api = access.base_url.iter().fold(api, OpenApi::base_url);
    let api = access.bearer.iter().fold(api, OpenApi::bearer);
    let header = access.idempotency_header.iter();
    let api = header.fold(api, OpenApi::idempotency_header);
    let variables = &access.server_variable;
    let api = each(api, variables, |api, (name, it)| {
        api.server_variable(name, it)
    });
    let api = each(api, &access.secret, |api, (scheme, it)| {
        api.secret(scheme, it)
    });
    let api = api.hosts(&access.host).security(&access.security);
    when(access.allow_private, api, OpenApi::allow_private)
}

/// Returns the API after each of these settings.
fn each<T>(api: OpenApi, settings: &[T], set: impl Fn(OpenApi, &T) -> OpenApi) -> OpenApi {
    settings.iter().fold(api, set)
}

/// Returns the API after a setting, if that is asked for.
fn when(is_set: bool, api: OpenApi, set: impl Fn(OpenApi) -> OpenApi) -> OpenApi {
    if is_set { set(api) } else { api }
}

fn save(tools: &ApiTools, options: &Options) -> Result<(), Error> {
    if let Some(file) = &options.results.output {
        // A pipe has no end.
        let text = file.is_file().then(|| fs::read_to_string(file));
        let text = text.and_then(Result::ok).filter(|it| !it.is_empty());
        if text.is_some_and(|it| ApiTools::is_edited(&it)) {
            let file = file.display();
            return Err(
                format!("{file} has been edited: write to another file, and compare them").into(),
            );
        }
        output::write(file, &tools.to_json())?;
    }
    if let Some(name) = &options.project.new {
        project::generate(name, &options.project, &options.document, tools)?;
    }
    Ok(())
}
