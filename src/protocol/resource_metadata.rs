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
    app::AppState,
    cors,
    json_response::{insert, json_response, to_json},
    problem,
    sign_in::WELL_KNOWN,
};
use crate::PublicUrl;

/// Clients follow a change of the issuer within minutes, and clients in browsers read the metadata
/// before they have any credentials.
const HEADERS: &[(&str, &str)] = &[
    ("cache-control", "public, max-age=300"),
    ("access-control-allow-origin", "*"),
];

/// Returns the routes of the metadata, if there is an issuer.
pub(super) fn routes(app: &AppState) -> Router<Arc<AppState>> {
    let router = Router::new();
    if !app.engine.auth.has_issuers() {
        return router;
    }
    let handler = async |State(app): State<Arc<AppState>>, request: Request| {
        metadata(&app, &request).unwrap_or_else(|| problem::not_found(&app))
    };
    // Looked up, not routed: the router would take some prefixes for patterns, and panic.
    let below = format!("{WELL_KNOWN}/{{*path}}");
    router
        .route(WELL_KNOWN, get(handler).options(cors::with_anyone))
        .route(&below, get(handler).options(cors::with_anyone))
}

/// Returns the path of the resource whose metadata is at this path: RFC 9728, 3.1.
fn resource_at(path: &str, app: &AppState) -> Option<&'static str> {
    let rest = path.trim_end_matches('/').strip_prefix(WELL_KNOWN)?;
    let is_at = |resource: &&str| {
        let prefix = rest.strip_suffix(*resource);
        prefix.is_some_and(|prefix| is_prefix(&app.public_url, prefix))
    };
    let resources = app
        .protocols
        .iter()
        .map(|it| it.declaration().resource_path);
    // Of two resources at one path, that of MCP is served, whose clients read it.
    resources.filter(is_at).max()
}

/// Returns true for a path that the server's URL may have, without a trailing slash.
pub(super) fn is_prefix(server: &PublicUrl, path: &str) -> bool {
    let configured = server.configured.as_deref();
    let url = configured.and_then(|url| Url::parse(url).ok());
    let is_own = url.is_some_and(|url| url.path().trim_end_matches('/') == path);
    let base_path = format!("/{}", server.base_path);
    path.is_empty() || is_own || path == base_path.trim_end_matches('/')
}

fn metadata(app: &AppState, request: &Request) -> Option<Response> {
    let resource_path = resource_at(request.uri().path(), app)?;
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
    body["resource_name"] = app.info.title.clone().into();
    let mut response = json_response(StatusCode::OK, to_json(&body));
    insert(response.headers_mut(), HEADERS);
    Some(response)
}
