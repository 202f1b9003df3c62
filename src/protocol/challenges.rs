//! What browsers and clients ask of authorization: challenges, and the provider's way back.
//!
//! Pages are plain, without scripts and styles, and repeat nothing that came with the request.

mod page;

use std::sync::Arc;

use axum::{
    Router,
    body::{Body, Bytes},
    extract::{Path, Request, State, rejection::PathRejection},
    response::Response,
    routing::get,
};
use http::{
    Extensions, HeaderValue, Method, StatusCode,
    header::{CACHE_CONTROL, LOCATION, REFERRER_POLICY, SET_COOKIE},
    request::Parts,
};
use http_body_util::{BodyExt, Limited};
use serde::Serialize;

use super::{
    First,
    http::{AppState, checked, json_response},
    problem,
};

/// What the pages need.
#[derive(Clone)]
struct ChallengePages {
    app: Arc<AppState>,
    broker: Arc<Broker>,
}
use crate::{
    StoreError,
    arrival::Invocation,
    oauth::{Broker, BrowserResponse, CallbackPage, CallbackQuery},
};
use page::page;

/// The longest form that is read, in bytes: its one field is far shorter.
const LARGEST_FORM: usize = 4 * 1024;

/// What is no text is no id either.
type PathOf = Result<Path<String>, PathRejection>;

fn text_of(path: PathOf) -> String {
    path.map(|Path(text)| text).unwrap_or_default()
}

/// The three paths.
pub(super) fn routes<S>(app: Arc<AppState>, broker: Arc<Broker>) -> Router<S> {
    Router::new()
        .route("/authorization/challenges/{id}", get(status))
        .route(
            "/authorization/challenges/{id}/start",
            get(question).post(start),
        )
        .route("/authorization/{provider}/callback", get(callback))
        .with_state(ChallengePages { app, broker })
}

/// OXP 1.0, Authorization Challenges: always a 200.
async fn status(State(pages): State<ChallengePages>, id: PathOf, request: Request) -> Response {
    #[derive(Serialize)]
    struct Status {
        status: &'static str,
    }
    if pages.broker.authenticate_checks()
        && let Err(response) = checked::<First>(&pages.app, request).await
    {
        return response;
    }
    let status = pages
        .broker
        .status(&text_of(id))
        .await
        .unwrap_or_else(|error| {
            tracing::warn!(%error, "it cannot be told how a challenge stands");
            // Whoever asks asks again.
            "pending"
        });
    let body = serde_json::to_vec(&Status { status });
    let body = body.expect("our own bodies have string keys only");
    let mut response = json_response(StatusCode::OK, body.into());
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

async fn question(State(pages): State<ChallengePages>, id: PathOf, request: Request) -> Response {
    let base = base_of(request.extensions());
    let (id, headers) = (text_of(id), request.headers());
    answered(pages.broker.question(&id, base.as_deref(), headers).await)
}

async fn start(State(pages): State<ChallengePages>, id: PathOf, request: Request) -> Response {
    let base = base_of(request.extensions());
    let (parts, body) = request.into_parts();
    let body = Limited::new(body, LARGEST_FORM).collect().await;
    let form = body.ok().and_then(|body| form_in(&body.to_bytes()));
    let (id, headers) = (text_of(id), &parts.headers);
    let started = pages
        .broker
        .start(&id, base.as_deref(), headers, form.as_deref());
    answered(started.await)
}

fn answered(answer: Result<BrowserResponse, StoreError>) -> Response {
    match answer {
        Ok(BrowserResponse::Consent { page, cookie }) => page::consent(&page, &cookie),
        Ok(BrowserResponse::Redirect { url, cookie }) => redirect(&url, &cookie),
        Ok(BrowserResponse::Page(told)) => {
            if told == CallbackPage::OtherBrowser {
                tracing::warn!("a form was sent that this server has not shown to this browser");
            }
            page(told)
        }
        Err(error) => page(unavailable(&error)),
    }
}

async fn callback(
    State(pages): State<ChallengePages>,
    provider: PathOf,
    request: Request,
) -> Response {
    // A code works once; looking whether there is something must not use it up.
    if request.method() != Method::GET {
        return problem::method_not_allowed();
    }
    let (parts, _) = request.into_parts();
    page(told(&pages.broker, &text_of(provider), &parts).await)
}

async fn told(broker: &Arc<Broker>, provider: &str, request: &Parts) -> CallbackPage {
    let Some(back) = back_in(request.uri.query().unwrap_or_default()) else {
        return CallbackPage::OtherBrowser;
    };
    let base = base_of(&request.extensions);
    let told = broker.callback(provider, back, base.as_deref(), &request.headers);
    let told = told.await.unwrap_or_else(|error| unavailable(&error));
    if told == CallbackPage::OtherBrowser {
        tracing::warn!("a redirect came back that does not belong to this browser, or too late");
    }
    told
}

fn unavailable(error: &StoreError) -> CallbackPage {
    tracing::error!(%error, "a challenge cannot be answered");
    CallbackPage::Unavailable
}

/// Where the platform says that the server is.
fn base_of(request: &Extensions) -> Option<String> {
    request.get::<Arc<Invocation>>()?.base_url.clone()
}

/// RFC 6749, 3.1: nothing may be there twice.
fn back_in(query: &str) -> Option<CallbackQuery> {
    let mut back = CallbackQuery::default();
    for (name, value) in pairs_in(query)?.query_pairs() {
        let field = match &*name {
            "state" => &mut back.state,
            "code" => &mut back.code,
            "error" => &mut back.error,
            "iss" => &mut back.issuer,
            _ => continue,
        };
        if field.replace(value.into_owned()).is_some() {
            return None;
        }
    }
    Some(back)
}

/// The field of the page's form, if it is there once.
fn form_in(body: &Bytes) -> Option<String> {
    let url = pairs_in(std::str::from_utf8(body).ok()?)?;
    let mut fields = url.query_pairs().filter(|(name, _)| name == page::FIELD);
    let (_, value) = fields.next()?;
    fields.next().is_none().then(|| value.into_owned())
}

/// A URL with these pairs, because it is URLs that can be taken apart.
fn pairs_in(text: &str) -> Option<reqwest::Url> {
    reqwest::Url::parse(&format!("http://localhost/?{text}")).ok()
}

fn redirect(url: &str, cookie: &str) -> Response {
    let (Ok(url), Ok(cookie)) = (HeaderValue::try_from(url), HeaderValue::try_from(cookie)) else {
        return page(CallbackPage::Failed);
    };
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SEE_OTHER;
    let headers = response.headers_mut();
    headers.insert(LOCATION, url);
    headers.insert(SET_COOKIE, cookie);
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    response
}
