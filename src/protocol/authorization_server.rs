//! The routes of this server as an authorization server: its metadata and keys, the pages on which
//! users sign in, and the endpoints for tokens, registrations and revocations.
//!
//! Clients in browsers may use all that needs no browser of the user: those responses depend on
//! nothing that a browser would add.

use std::sync::Arc;

use axum::{
    Router,
    extract::{Request, State},
    response::Response,
    routing::{get, post},
};
use http::{
    HeaderValue, Method, StatusCode,
    header::{AUTHORIZATION, CACHE_CONTROL},
};
use serde_json::{Value, json};

use super::{
    app::AppState,
    cors,
    json_response::{insert, json_response, to_json},
    pages::{form_in, limited, page_of},
    problem,
    resource_metadata::is_prefix,
};
use crate::{
    auth::sign_in::{AuthorizationServer, EndpointError, JWKS_PATH, OAuthError, is_sign_in_state},
    oauth::{Browser, BrowserResponse, Parameters},
};
use lambda_tools_accounts::pages::{UNREADABLE_FORM, sign_in_response};

/// The maximum size of a form or a registration, in bytes.
const LARGEST: usize = 32 * 1024;
/// The paths of the metadata: RFC 8414, section 3; OpenID Connect Discovery 1.0, section 4.
const WELL_KNOWN: [&str; 2] = [
    "/.well-known/oauth-authorization-server",
    "/.well-known/openid-configuration",
];

#[derive(Clone)]
struct Endpoints {
    app: Arc<AppState>,
    server: Arc<AuthorizationServer>,
}

/// Returns the routes.
pub(super) fn routes<S: Clone + Send + Sync + 'static>(
    app: &Arc<AppState>,
    issuer: &Arc<AuthorizationServer>,
) -> Router<S> {
    let (app, server) = (Arc::clone(app), Arc::clone(issuer));
    let router = WELL_KNOWN.into_iter().fold(Router::new(), |router, path| {
        // RFC 8414, 3.1: the path of the issuer follows the well-known one.
        let below = format!("{path}/{{*path}}");
        let handler = get(metadata).options(cors::with_anyone);
        router.route(path, handler.clone()).route(&below, handler)
    });
    router
        .route(JWKS_PATH, get(keys).options(cors::with_anyone))
        .route("/authorize", get(authorize).post(consent))
        .route("/token", post(token).options(cors::with_anyone))
        .route("/register", post(register).options(cors::with_anyone))
        .route("/revoke", post(revoke).options(cors::with_anyone))
        .with_state(Endpoints { app, server })
}

/// Returns a response that pages of any origin may read.
fn public(status: StatusCode, body: &Value, caching: &'static str) -> Response {
    let mut response = json_response(status, to_json(body));
    let headers = response.headers_mut();
    insert(headers, &[("access-control-allow-origin", "*")]);
    headers.insert(CACHE_CONTROL, HeaderValue::from_static(caching));
    response
}

async fn metadata(State(it): State<Endpoints>, request: Request) -> Response {
    let path = request.uri().path().trim_end_matches('/');
    let mut known = WELL_KNOWN.into_iter();
    let prefix = known.find_map(|known| path.strip_prefix(known));
    let is_served = prefix.is_some_and(|prefix| is_prefix(&it.app.public_url, prefix));
    match it.app.base_url(request.extensions()) {
        Some(base) if is_served => {
            let body = it.server.metadata(&base);
            public(StatusCode::OK, &body, "public, max-age=300")
        }
        _ => problem::not_found(&it.app),
    }
}

async fn keys(State(it): State<Endpoints>) -> Response {
    match it.server.jwks().await {
        Ok(keys) => public(StatusCode::OK, &keys, "public, max-age=300"),
        Err(error) => endpoint_error("keys", &error.into(), false),
    }
}

async fn authorize(State(it): State<Endpoints>, request: Request) -> Response {
    // Where the user has agreed before, a sign-in begins, which a HEAD request must not do.
    if request.method() != Method::GET {
        return problem::method_not_allowed();
    }
    let Some(base) = it.app.base_url(request.extensions()) else {
        return problem::not_found(&it.app);
    };
    let query = request.uri().query().unwrap_or_default();
    let browser = Browser::new(&base, request.headers());
    let response = it.server.authorize(query, browser).await;
    page_of(sign_in_response(response, it.app.info.shown()))
}

async fn consent(State(it): State<Endpoints>, request: Request) -> Response {
    let Some(base) = it.app.base_url(request.extensions()) else {
        return problem::not_found(&it.app);
    };
    let (parts, body) = request.into_parts();
    let browser = Browser::new(&base, &parts.headers);
    let response = match form_in(body, LARGEST).await {
        Some(form) => it.server.consent(&form, browser).await,
        None => Ok(BrowserResponse::Page(UNREADABLE_FORM)),
    };
    page_of(sign_in_response(response, it.app.info.shown()))
}

/// Returns the server whose sign-in a provider's redirect belongs to.
pub(super) fn of_callback<'a>(
    app: &'a AppState,
    provider: &str,
    query: &Parameters,
) -> Option<&'a Arc<AuthorizationServer>> {
    let server = app.authorization_server.as_ref()?;
    let is_own = query.get("state").is_some_and(is_sign_in_state);
    (is_own && server.has_provider(provider)).then_some(server)
}

async fn token(State(it): State<Endpoints>, request: Request) -> Response {
    let base = it.app.base_url(request.extensions());
    let (form, authenticates) = form_of(request).await;
    let answer = match (&base, &form) {
        (Some(base), Some(form)) => it.server.token(form, base).await,
        _ => Err(invalid_form()),
    };
    let mut response = match answer {
        Ok(tokens) => public(StatusCode::OK, &tokens, "no-store"),
        Err(error) => endpoint_error("token", &error, authenticates),
    };
    insert(response.headers_mut(), &[("pragma", "no-cache")]);
    response
}

async fn register(State(it): State<Endpoints>, request: Request) -> Response {
    let body = limited(request.into_body(), LARGEST)
        .await
        .unwrap_or_default();
    match it.server.register(&body).await {
        Ok(registration) => public(StatusCode::CREATED, &registration, "no-store"),
        Err(error) => endpoint_error("register", &error, false),
    }
}

async fn revoke(State(it): State<Endpoints>, request: Request) -> Response {
    let (form, authenticates) = form_of(request).await;
    let answer = match &form {
        Some(form) => it.server.revoke(form).await,
        None => Err(invalid_form()),
    };
    match answer {
        Ok(()) => public(StatusCode::OK, &json!({}), "no-store"),
        Err(error) => endpoint_error("revoke", &error, authenticates),
    }
}

/// Returns the form, and true if its client does not identify itself there, but in `Authorization`.
async fn form_of(request: Request) -> (Option<Parameters>, bool) {
    let has_header = request.headers().contains_key(AUTHORIZATION);
    let form = form_in(request.into_body(), LARGEST).await;
    let has_id = form.as_ref().is_none_or(|it| it.get("client_id").is_some());
    (form, has_header && !has_id)
}

fn invalid_form() -> EndpointError {
    let text = "The body must be a form of at most 32 KiB in which no field occurs twice";
    OAuthError::request(text).into()
}

/// Returns the response to a request that an endpoint rejects: RFC 6749, 5.2. A client that
/// authenticates is not a public one, as all are here.
fn endpoint_error(operation: &str, error: &EndpointError, authenticates: bool) -> Response {
    match error {
        EndpointError::Rejected(OAuthError { code, description }) => {
            tracing::warn!(
                operation,
                code,
                reason = description,
                "a request to sign in was rejected"
            );
            let mut body = json!({"error": code, "error_description": description});
            if !authenticates {
                return public(StatusCode::BAD_REQUEST, &body, "no-store");
            }
            body["error"] = "invalid_client".into();
            let mut response = public(StatusCode::UNAUTHORIZED, &body, "no-store");
            insert(
                response.headers_mut(),
                &[("www-authenticate", "Basic realm=\"token\"")],
            );
            response
        }
        EndpointError::Unavailable(reason) => {
            tracing::error!(
                operation,
                reason,
                "a request to sign in could not be processed"
            );
            let text = "The server cannot process the request at the moment";
            let body = json!({"error": "temporarily_unavailable", "error_description": text});
            let mut response = public(StatusCode::SERVICE_UNAVAILABLE, &body, "no-store");
            insert(response.headers_mut(), &[("retry-after", "5")]);
            response
        }
    }
}
