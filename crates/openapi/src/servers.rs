//! The URL of an API, which the owner chooses, never a model.

use lambda_tools_schema::document::Document;
use reqwest::Url;
use serde_json::{Map, Value};

use crate::{OpenApiError, OpenApiOptions, error::all_known, operation::Operation};

/// Checks that the document has the hosts and variables that options name.
pub(crate) fn check(options: &OpenApiOptions, document: &Document) -> Result<(), OpenApiError> {
    let operations = Operation::all(document);
    let own = operations.iter().flat_map(|it| [it.object, it.item]);
    let own = own.filter_map(|it| it.get("servers"));
    let all = own.chain([&document.root()["servers"]]);
    let all: Vec<_> = all.filter_map(Value::as_array).flatten().collect();
    let variables = all.iter().filter_map(|it| it["variables"].as_object());
    let variables = variables.flat_map(Map::keys).map(String::as_str);
    let urls = all.iter().filter_map(|it| it["url"].as_str());
    let templates = urls.flat_map(|it| it.split('{').skip(1));
    let templates = templates.filter_map(|it| it.split_once('}'));
    let variables = variables.chain(templates.map(|(name, _)| name));
    let named = options.server_variables.keys();
    all_known("server variable", "--server-variable", named, variables)?;
    let hosts = all.iter().filter_map(|it| {
        let url = filled(it["url"].as_str()?, &it["variables"], options).ok()?;
        host_of(&resolved(Some("https://relative.invalid"), &url)?)
    });
    let hosts: Vec<_> = hosts.collect();
    let hosts = hosts.iter().map(String::as_str);
    all_known("host", "--host", &options.hosts, hosts)
}

/// Returns the URL that paths are appended to.
pub(crate) fn base_url(
    document: &Document,
    options: &OpenApiOptions,
) -> Result<String, OpenApiError> {
    if let Some(url) = &options.base_url {
        return checked(url).map_err(OpenApiError::new);
    }
    let servers = &document.root()["servers"];
    // Without servers, there is one with this URL: OpenAPI 3.1, OpenAPI Object.
    let usual = serde_json::json!([{"url": "/"}]);
    let is_listed = servers.as_array().is_some_and(|it| !it.is_empty());
    let servers = if is_listed { servers } else { &usual };
    let source = options.document_url.as_deref();
    let mut urls = urls_in(servers, source, options).map_err(OpenApiError::new)?;
    urls.dedup();
    match &*urls {
        [url] => Ok(url.clone()),
        [] => Err(OpenApiError::new(match servers[0]["url"].as_str() {
            Some(url) if is_listed => format!(
                "the document's server is not an absolute http URL, but {url:?}: set the URL with --base-url"
            ),
            _ => "the document names no server: set its URL with --base-url".to_owned(),
        })),
        several => Err(OpenApiError::new(format!(
            "the document names several servers; set one with --base-url: {}",
            several.join(", ")
        ))),
    }
}

/// Returns the URL of an operation that is not at the base URL: OpenAPI 3.1, Server Object.
pub(crate) fn own_url(
    operation: &Operation,
    base: &str,
    options: &OpenApiOptions,
) -> Result<Option<String>, String> {
    let of = |object: &Map<String, Value>| object.get("servers").cloned();
    let Some(servers) = of(operation.object).or_else(|| of(operation.item)) else {
        return Ok(None);
    };
    let source = options.document_url.as_deref().unwrap_or(base);
    let urls = urls_in(&servers, Some(source), options)?;
    if let (true, Some(url)) = (urls.is_empty(), servers[0]["url"].as_str()) {
        return Err(format!("its server {url:?} is not an http URL"));
    }
    let Some(url) = urls.into_iter().next().filter(|it| it != base) else {
        return Ok(None);
    };
    let host = host_of(&url);
    let origin = |url: &str| Url::parse(url).map(|it| it.origin()).ok();
    let is_allowed =
        origin(&url) == origin(base) || options.hosts.iter().any(|it| Some(it) == host.as_ref());
    if !is_allowed {
        let host = host.unwrap_or_default();
        return Err(format!(
            "it is on another host, {host}; --host {host} allows it"
        ));
    }
    Ok(Some(url))
}

fn host_of(url: &str) -> Option<String> {
    Some(Url::parse(url).ok()?.host_str()?.to_owned())
}

/// Returns a URL of the document as an absolute one: RFC 3986, 5.2.
pub(crate) fn resolved(base: Option<&str>, url: &str) -> Option<String> {
    let scheme = url.split("://").next().unwrap_or_default();
    if scheme.len() < url.len() && !scheme.contains(['/', '?', '#']) {
        return Some(url.to_owned());
    }
    if url.trim().is_empty() {
        return None;
    }
    let base = Url::parse(base?).ok()?;
    Some(base.join(url).ok()?.into())
}

/// Returns the http URLs of servers, with the variables' values.
fn urls_in(
    servers: &Value,
    base: Option<&str>,
    options: &OpenApiOptions,
) -> Result<Vec<String>, String> {
    let servers = servers.as_array().into_iter().flatten();
    let urls = servers.filter_map(|server| {
        let url = filled(server["url"].as_str()?, &server["variables"], options);
        url.map(|it| resolved(base, &it).filter(|it| it.starts_with("http")))
            .transpose()
    });
    urls.map(|url| checked(&url?)).collect()
}

/// Replaces the variables of a URL.
fn filled(url: &str, variables: &Value, options: &OpenApiOptions) -> Result<String, String> {
    let mut url = url.to_owned();
    let declared = |name: &String| variables.get(name).is_some();
    for (name, value) in options
        .server_variables
        .iter()
        .filter(|(name, _)| !declared(name))
    {
        url = url.replace(&format!("{{{name}}}"), value);
    }
    for (name, variable) in variables.as_object().into_iter().flatten() {
        let chosen = options.server_variables.get(name).map(String::as_str);
        let value = chosen.or_else(|| variable["default"].as_str());
        let value = value.unwrap_or_default();
        let values = variable["enum"].as_array();
        if values.is_some_and(|it| !it.iter().any(|it| it == value)) {
            return Err(format!("the server's variable {name} cannot be {value:?}"));
        }
        url = url.replace(&format!("{{{name}}}"), value);
    }
    Ok(url)
}

/// Returns the URL without a slash at its end, if paths can be appended to it.
pub(crate) fn checked(url: &str) -> Result<String, String> {
    let is_bare = |it: &Url| it.query().is_none() && matches!(it.scheme(), "https" | "http");
    match parsed(url).filter(is_bare) {
        Some(_) => Ok(url.trim_end_matches('/').to_owned()),
        None => Err(format!("no path can be appended to the URL {url:?}")),
    }
}

/// Returns true for the URL of an authorization server: RFC 6749, 3.1 and 3.2. It uses TLS, unless
/// the server is on this machine.
pub(crate) fn is_endpoint(url: &str) -> bool {
    parsed(url).is_some_and(|it| match it.scheme() {
        "http" => matches!(it.host_str(), Some("127.0.0.1" | "localhost" | "[::1]")),
        scheme => scheme == "https",
    })
}

/// Returns the URL of a host, if it has no credentials, no fragment and nothing that a parser would
/// repair: it is used as it is written.
fn parsed(url: &str) -> Option<Url> {
    let is_repaired =
        |it: char| it.is_whitespace() || it.is_control() || "\"<>\\^`{|}".contains(it);
    let parsed = Url::parse(url).ok()?;
    let is_bare = parsed.fragment().is_none()
        && parsed.username().is_empty()
        && parsed.password().is_none()
        && !url.contains(is_repaired);
    (is_bare && parsed.has_host()).then_some(parsed)
}
