//! A document with the options of the command.
//!
//! The library converts; this module reads, and says what to type if something is missing.

use std::{collections::BTreeMap, fmt::Display};

use lambda_tools::from_openapi::{OpenApi, OpenApiOptions, Reduction};
use serde_json::{Map, Value};

use crate::{
    Error,
    args::{Conversion, Pair},
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
        let openapi = OpenApi::new(document, options_of(source, options))?;
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

/// Returns the options for the conversion of a document.
fn options_of(source: &str, options: &Conversion) -> OpenApiOptions {
    let (choice, changes, access) = (&options.choice, &options.changes, &options.access);
    let mut include_paths = choice.include_path.clone();
    include_paths.extend(choice.all.then(|| "*".to_owned()));
    let mut fix: BTreeMap<String, Map<String, Value>> = BTreeMap::new();
    for (operation, parameter, value) in changes.fix.iter().cloned() {
        fix.entry(operation).or_default().insert(parameter, value);
    }
    let map = |pairs: &[Pair]| pairs.iter().cloned().collect();
    let scheme = |text: &String| match text.split_once(':') {
        Some((scheme, flow)) => (scheme.to_owned(), Some(flow.to_owned())),
        None => (text.clone(), None),
    };
    OpenApiOptions {
        include_tags: choice.include_tag.clone(),
        include_operations: choice.include_operation.clone(),
        include_paths,
        include_methods: choice.include_method.clone(),
        exclude: choice.exclude.clone(),
        searchable: choice.searchable,
        list_all: choice.list_all,
        toolkit: changes.toolkit.clone(),
        tool_version: changes.tool_version.as_ref().map(ToString::to_string),
        rename: map(&changes.rename),
        describe: map(&changes.describe),
        fix,
        reads: changes.reads.clone(),
        once: changes.once.iter().cloned().collect(),
        document_url: source::is_url(source).then(|| source.to_owned()),
        base_url: access.base_url.clone(),
        hosts: access.host.clone(),
        server_variables: map(&access.server_variable),
        secrets: map(&access.secret),
        bearer: access.bearer.clone(),
        security: access.security.iter().map(scheme).collect(),
        idempotency_header: access.idempotency_header.clone(),
        allow_private: access.allow_private,
    }
}
