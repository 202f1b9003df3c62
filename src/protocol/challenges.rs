//! The routes for authorization: challenges, and the provider's callback.
//!
//! Pages have no scripts, load nothing, and echo nothing from the request.

use std::sync::Arc;

use axum::{
    Router,
    extract::{Path, Request, State, rejection::PathRejection},
    response::Response,
    routing::get,
};
use http::{Method, StatusCode};
use serde_json::json;

#[cfg(feature = "sign-in")]
use super::authorization_server;
use super::{
    app::AppState,
    json_response::{insert, json_response, to_json},
    pages::{form_in, page_of},
    problem,
};
use crate::oauth::{
    Broker, Browser, BrowserResponse, ChallengePage, ChallengeResponse, Parameters,
};
#[cfg(feature = "sign-in")]
use lambda_tools_accounts::pages::sign_in_response;
use lambda_tools_accounts::pages::{FIELD, challenge_response};

/// The state that the pages need.
#[derive(Clone)]
struct ChallengePages {
    app: Arc<AppState>,
    broker: Arc<Broker>,
}

impl ChallengePages {
    fn page(&self, response: Result<ChallengeResponse, ChallengePage>) -> Response {
        page_of(challenge_response(response, self.app.info.shown()))
    }
}

/// The maximum size of a form, in bytes: its only field is far shorter.
const LARGEST_FORM: usize = 4 * 1024;

/// A path parameter; an error if it is not UTF-8.
type PathText = Result<Path<String>, PathRejection>;

/// Returns the text of a path parameter; empty, which matches no id, if it is invalid.
fn text_of(path: PathText) -> String {
    path.map(|Path(text)| text).unwrap_or_default()
}

/// Returns the routes of challenges and callbacks.
pub(super) fn routes<S>(app: &Arc<AppState>, broker: &Arc<Broker>) -> Router<S> {
    let (app, broker) = (Arc::clone(app), Arc::clone(broker));
    Router::new()
        .route("/authorization/challenges/{id}", get(status))
        .route(
            "/authorization/challenges/{id}/start",
            get(consent).post(start),
        )
        .route("/authorization/{provider}/callback", get(callback))
        .with_state(ChallengePages { app, broker })
}

/// Responds with the status of a challenge, always with a 200 (OXP 1.0, Authorization Challenges).
async fn status(State(pages): State<ChallengePages>, id: PathText) -> Response {
    let status = pages
        .broker
        .status(&text_of(id))
        .await
        .unwrap_or_else(|error| {
            tracing::warn!(%error, "the status of a challenge could not be read");
            // The client polls again.
            "pending"
        });
    let body = to_json(&json!({"status": status}));
    let mut response = json_response(StatusCode::OK, body);
    insert(response.headers_mut(), &[("cache-control", "no-store")]);
    response
}

async fn consent(State(pages): State<ChallengePages>, id: PathText, request: Request) -> Response {
    let Some(base) = pages.app.base_url(request.extensions()) else {
        return pages.page(Err(ChallengePage::Expired));
    };
    let browser = Browser::new(&base, request.headers());
    let response = pages.broker.consent_page(&text_of(id), browser).await;
    pages.page(response)
}

async fn start(State(pages): State<ChallengePages>, id: PathText, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let Some(base) = pages.app.base_url(&parts.extensions) else {
        return pages.page(Err(ChallengePage::Expired));
    };
    let browser = Browser::new(&base, &parts.headers);
    let form = form_in(body, LARGEST_FORM).await;
    let token = form.as_ref().and_then(|form| form.get(FIELD));
    let response = pages.broker.start(&text_of(id), browser, token).await;
    pages.page(response)
}

async fn callback(
    State(pages): State<ChallengePages>,
    provider: PathText,
    request: Request,
) -> Response {
    // A code works once, and a HEAD request must not use it up.
    if request.method() != Method::GET {
        return problem::method_not_allowed();
    }
    let (parts, _) = request.into_parts();
    let query = parts.uri.query().unwrap_or_default();
    let base = pages.app.base_url(&parts.extensions);
    let (query, base) = match (Parameters::parse(query.as_bytes()), base) {
        (Some(query), Some(base)) => (query, base),
        (Some(_), None) => return pages.page(Err(ChallengePage::Expired)),
        (None, _) => return pages.page(Err(ChallengePage::OtherBrowser)),
    };
    let (provider, browser) = (text_of(provider), Browser::new(&base, &parts.headers));
    #[cfg(feature = "sign-in")]
    if let Some(server) = authorization_server::of_callback(&pages.app, &provider, &query) {
        let response = server.callback(query, browser).await;
        return page_of(sign_in_response(response, pages.app.info.shown()));
    }
    let page = pages.broker.callback(&provider, query, browser).await;
    pages.page(page.map(BrowserResponse::Page))
}
