//! The metadata from which clients learn who issues tokens for this server: RFC 9728.
//!
//! There is none unless an issuer is configured: clients that find metadata ignore the API key that
//! their user has configured.

use std::{collections::BTreeSet, sync::Arc};

use axum::{
    Router,
    extract::{Request, State},
    response::Response,
    routing::get,
};
use http::StatusCode;
use reqwest::Url;
use serde_json::json;

use super::{
    Protocol,
    admission::AppState,
    codec::Declaration,
    cors,
    json_response::{insert, json_response, to_json},
    problem,
    sign_in::WELL_KNOWN,
};
use crate::{ServerInfo, hosts::PublicUrl};

/// Clients follow a change of the issuer within minutes, and clients in browsers read the metadata
/// before they have any credentials.
const HEADERS: &[(&str, &str)] = &[
    ("cache-control", "public, max-age=300"),
    ("access-control-allow-origin", "*"),
];

/// Returns the routes of the metadata, if there is an issuer.
pub(super) fn routes(
    app: &Arc<AppState>,
    served: &[Protocol],
    info: &ServerInfo,
) -> Router<Arc<AppState>> {
    let router = Router::new();
    if !app.engine.auth.has_issuers() {
        return router;
    }
    let declarations: Arc<[_]> = served.iter().map(|it| it.declaration()).collect();
    let title = Arc::<str>::from(&*info.title);
    let handler = async move |State(app): State<Arc<AppState>>, request: Request| {
        metadata(&app, &request, &title, &declarations)
            .unwrap_or_else(|| problem::not_found(&declarations))
    };
    // Looked up, not routed: the router would take some prefixes for patterns, and panic.
    let below = format!("{WELL_KNOWN}/{{*path}}");
    router
        .route(WELL_KNOWN, get(handler.clone()).options(cors::with_anyone))
        .route(&below, get(handler).options(cors::with_anyone))
}

/// Returns the path of the resource whose metadata is at this path: RFC 9728, 3.1.
fn resource_at(
    path: &str,
    url: &PublicUrl,
    served: &[&'static Declaration],
) -> Option<&'static str> {
    let rest = path.trim_end_matches('/').strip_prefix(WELL_KNOWN)?;
    let prefixes = prefixes_of(url);
    let is_at = |resource: &&str| {
        let prefix = rest.strip_suffix(*resource);
        prefix.is_some_and(|prefix| prefixes.iter().any(|it| it == prefix))
    };
    let resources = served.iter().map(|it| it.resource_path);
    // Of two resources at one path, that of MCP is served, whose clients read it.
    resources.filter(is_at).max()
}

/// Returns the paths that the server's URL may have, without a trailing slash; the first one is empty.
pub(super) fn prefixes_of(server: &PublicUrl) -> Vec<String> {
    let configured = server.configured.as_deref();
    let url = configured.and_then(|url| Url::parse(url).ok());
    let path = url.map(|url| url.path().trim_end_matches('/').to_owned());
    let base_path = match server.base_path.as_str() {
        "" => None,
        path => Some(format!("/{path}")),
    };
    let mut prefixes = vec![String::new()];
    for prefix in [path, base_path].into_iter().flatten() {
        if !prefixes.contains(&prefix) {
            prefixes.push(prefix);
        }
    }
    prefixes
}

fn metadata(
    app: &AppState,
    request: &Request,
    title: &str,
    served: &[&'static Declaration],
) -> Option<Response> {
    let resource_path = resource_at(request.uri().path(), &app.public_url, served)?;
    let base = app.base_url(request.extensions())?;
    let (auth, toolkit) = (&app.engine.auth, &app.engine.toolkit);
    let scopes: BTreeSet<_> = auth.known_scopes(toolkit).collect();
    // RFC 9728, section 2.
    let mut body = json!({
        "resource": format!("{base}{resource_path}"),
        "authorization_servers": auth.issuers(&base),
    });
    if !scopes.is_empty() {
        body["scopes_supported"] = json!(scopes);
    }
    body["bearer_methods_supported"] = json!(["header"]);
    body["resource_name"] = title.into();
    let mut response = json_response(StatusCode::OK, to_json(&body).into());
    insert(response.headers_mut(), HEADERS);
    Some(response)
}
