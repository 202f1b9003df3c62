//! A document with the options of the command.
//!
//! The library converts; this module reads, and says what to type if something is missing.

use std::fmt::Display;

use lambda_tools::from_openapi::{OpenApi, Reduction};
use serde_json::Value;

use crate::{
    Error,
    args::{Access, Changes, Choice, Conversion, Pair},
    output::{quoted, say, typed},
    overlay, parse, source,
};

/// A document with all options, and a base URL to suggest if it has none.
pub(crate) struct Api {
    pub(crate) openapi: OpenApi,
    base_url: String,
}

impl Api {
    /// Applies the options to a document.
    pub(crate) fn new(
        source: &str,
        mut document: Value,
        options: &Conversion,
    ) -> Result<Self, Error> {
        for file in &options.changes.overlay {
            let warnings = overlay::apply(parse::read(file)?, &mut document);
            for warning in warnings.map_err(|error| format!("{file}: {error}"))? {
                say(&format!("warning: {file}: {warning}"));
            }
        }
        let base_url = suggested_base_url(&document);
        let api = OpenApi::new(document)?;
        let api = when(source::is_url(source), api, |api| api.document_url(source));
        let api = chosen(api, &options.choice);
        let openapi = reached(changed(api, &options.changes), &options.access);
        Ok(Self { openapi, base_url })
    }

    /// Reduces the chosen operations to tools.
    pub(crate) fn reduce(&self) -> Result<Reduction, Error> {
        (self.openapi.reduce()).map_err(|error| advised(&error, &self.base_url))
    }
}

/// Returns the first absolute URL that a document names, or that of a server on this machine.
fn suggested_base_url(document: &Value) -> String {
    let url = document["servers"][0]["url"].as_str().unwrap_or_default();
    if source::is_url(url) {
        return url.to_owned();
    }
    let path = if url.starts_with('/') { url } else { "" };
    format!("http://127.0.0.1:8000{}", path.trim_end_matches('/'))
}

/// Returns an error with the command that avoids it, if the error names an option.
pub(crate) fn advised(error: &(impl Display + ?Sized), base_url: &str) -> Error {
    let text = error.to_string();
    let base_url = format!("--base-url {}", quoted(base_url));
    let mut options = [&*base_url, "--allow-private", "--searchable"].into_iter();
    let is_named = |it: &&str| it.split(' ').next().is_some_and(|flag| text.contains(flag));
    match options.find(is_named) {
        Some(option) => format!("{text}; for example:\n  {} {option}", typed()).into(),
        None => text.into(),
    }
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
    let api = each(api, &changes.rename, OpenApi::rename);
    let api = each(api, &changes.describe, OpenApi::describe);
    let fixed = changes.fix.iter();
    let api = fixed.fold(api, |api, (id, name, it)| api.fix(id, name, it.clone()));
    api.reads(&changes.reads)
}

fn reached(api: OpenApi, access: &Access) -> OpenApi {
    let api = access.base_url.iter().fold(api, OpenApi::base_url);
    let api = access.bearer.iter().fold(api, OpenApi::bearer);
    let header = access.idempotency_header.iter();
    let api = header.fold(api, OpenApi::idempotency_header);
    let api = each(api, &access.server_variable, OpenApi::server_variable);
    let api = each(api, &access.secret, OpenApi::secret);
    let api = api.hosts(&access.host).security(&access.security);
    when(access.allow_private, api, OpenApi::allow_private)
}

/// Returns the API after each of these settings.
fn each<'a, F>(api: OpenApi, settings: &'a [Pair], set: F) -> OpenApi
where
    F: Fn(OpenApi, &'a String, &'a String) -> OpenApi,
{
    let settings = settings.iter();
    settings.fold(api, |api, (name, value)| set(api, name, value))
}

/// Returns the API after a setting, if that is asked for.
pub(crate) fn when<T>(is_set: bool, api: T, set: impl Fn(T) -> T) -> T {
    if is_set { set(api) } else { api }
}
