//! The routes for authorization: challenges, and the provider's callback.
//!
//! Pages have no scripts, load nothing, and echo nothing from the request.

mod consent;
pub(super) mod page;
mod result;

use std::sync::Arc;

use axum::{
    Router,
    body::Bytes,
    extract::{Path, Request, State, rejection::PathRejection},
    response::Response,
    routing::get,
};
use http::{Extensions, Method, StatusCode, request::Parts};
use http_body_util::{BodyExt, Limited};
use serde_json::json;

#[cfg(feature = "sign-in")]
use super::authorization_server;
use super::{
    admission::AppState,
    json_response::{insert, json_response, to_json},
    pages::{check_credentials, redirect},
    problem,
};
use crate::{
    ServerInfo, StoreError,
    arrival::Invocation,
    oauth::{Broker, BrowserResponse, CallbackPage, CallbackQuery},
};
use consent::consent_page;
use result::result_page;

/// The state that the pages need.
#[derive(Clone)]
struct ChallengePages {
    app: Arc<AppState>,
    broker: Arc<Broker>,
    info: Arc<ServerInfo>,
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
pub(super) fn routes<S>(app: Arc<AppState>, broker: Arc<Broker>, info: &ServerInfo) -> Router<S> {
    let info = Arc::new(info.clone());
    Router::new()
        .route("/authorization/challenges/{id}", get(status))
        .route(
            "/authorization/challenges/{id}/start",
            get(consent).post(start),
        )
        .route("/authorization/{provider}/callback", get(callback))
        .with_state(ChallengePages { app, broker, info })
}

/// Responds with the status of a challenge, always with a 200 (OXP 1.0, Authorization Challenges).
async fn status(State(pages): State<ChallengePages>, id: PathText, request: Request) -> Response {
    if pages.broker.authenticate_checks()
        && let Err(response) = check_credentials(&pages.app, request, "check", true).await
    {
        return response;
    }
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
    let mut response = json_response(StatusCode::OK, body.into());
    insert(response.headers_mut(), &[("cache-control", "no-store")]);
    response
}

async fn consent(State(pages): State<ChallengePages>, id: PathText, request: Request) -> Response {
    let base = base_url_of(request.extensions());
    let (id, headers) = (text_of(id), request.headers());
    let response = pages.broker.consent_page(&id, base.as_deref(), headers);
    browser_response(response.await, &pages.info)
}

async fn start(State(pages): State<ChallengePages>, id: PathText, request: Request) -> Response {
    let base = base_url_of(request.extensions());
    let (parts, body) = request.into_parts();
    let body = Limited::new(body, LARGEST_FORM).collect().await;
    let form = body.ok().and_then(|body| form_in(&body.to_bytes()));
    let (id, headers) = (text_of(id), &parts.headers);
    let response = pages
        .broker
        .start(&id, base.as_deref(), headers, form.as_deref());
    browser_response(response.await, &pages.info)
}

fn browser_response(response: Result<BrowserResponse, StoreError>, info: &ServerInfo) -> Response {
    match response {
        Ok(BrowserResponse::Consent { page, cookie }) => consent_page(&page, &cookie, info),
        Ok(BrowserResponse::Redirect { url, cookie }) => {
            redirect(&url, &[cookie]).unwrap_or_else(|| result_page(CallbackPage::Failed, info))
        }
        Ok(BrowserResponse::Page(page)) => {
            if page == CallbackPage::OtherBrowser {
                tracing::warn!("rejected a form that this server did not show to this browser");
            }
            result_page(page, info)
        }
        Err(error) => result_page(unavailable(&error), info),
    }
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
    #[cfg(feature = "sign-in")]
    if let Some(response) = authorization_server::callback(&pages.app, &pages.info, &parts).await {
        return response;
    }
    let page = callback_page(&pages.broker, &text_of(provider), &parts).await;
    result_page(page, &pages.info)
}

async fn callback_page(broker: &Arc<Broker>, provider: &str, request: &Parts) -> CallbackPage {
    let Some(query) = CallbackQuery::parse(request.uri.query().unwrap_or_default()) else {
        return CallbackPage::OtherBrowser;
    };
    let base = base_url_of(&request.extensions);
    let page = broker.callback(provider, query, base.as_deref(), &request.headers);
    let page = page.await.unwrap_or_else(|error| unavailable(&error));
    if page == CallbackPage::OtherBrowser {
        tracing::warn!("rejected a callback that belongs to another browser or came too late");
    }
    page
}

fn unavailable(error: &StoreError) -> CallbackPage {
    tracing::error!(%error, "a challenge could not be processed");
    CallbackPage::Unavailable
}

/// Returns the server's URL, according to the platform.
fn base_url_of(request: &Extensions) -> Option<String> {
    request.get::<Arc<Invocation>>()?.base_url.clone()
}

/// Returns the field of the page's form, if it occurs exactly once.
fn form_in(body: &Bytes) -> Option<String> {
    let mut fields = form_urlencoded::parse(body).filter(|(name, _)| name == consent::FIELD);
    let (_, value) = fields.next()?;
    fields.next().is_none().then(|| value.into_owned())
}
