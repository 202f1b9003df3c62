//! The metadata from which clients learn who issues tokens for this server: RFC 9728.
//!
//! There is none unless an issuer is configured: clients that find metadata ignore the API key that
//! their user has configured.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

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
use crate::{ServerInfo, arrival::Invocation, public_url::PublicUrl};

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
    let resources: BTreeSet<_> = declarations.iter().map(|it| it.resource_path).collect();
    let prefixes = prefixes_of(&app.public_url);
    let mut paths = BTreeMap::new();
    // In ascending order: of two resources at one path, that of MCP is served, whose clients read
    // it.
    for resource in resources {
        for prefix in &prefixes {
            // RFC 9728, 3.1: the path of the resource follows the well-known one.
            paths.insert(format!("{WELL_KNOWN}{prefix}{resource}"), resource);
        }
    }
    let (paths, title) = (Arc::new(paths), Arc::<str>::from(info.title()));
    let handler = async move |State(app): State<Arc<AppState>>, request: Request| match paths
        .get(request.uri().path().trim_end_matches('/'))
    {
        Some(resource) => metadata(&app, &request, resource, &title, &declarations),
        None => problem::not_found(&declarations),
    };
    // Looked up, not routed: the router would take some prefixes for patterns, and panic.
    let below = format!("{WELL_KNOWN}/{{*path}}");
    router
        .route(WELL_KNOWN, get(handler.clone()).options(cors::with_anyone))
        .route(&below, get(handler).options(cors::with_anyone))
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
    resource_path: &str,
    title: &str,
    served: &[&Declaration],
) -> Response {
    let invocation = request.extensions().get::<Arc<Invocation>>();
    let event_base = invocation.and_then(|it| it.base_url.as_deref());
    let Some(base) = app.public_url.resolve(event_base) else {
        return problem::not_found(served);
    };
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
    response
}
