//! What browsers and clients ask of authorization: challenges, and the provider's way back.
//!
//! Pages are plain, without scripts and styles, and repeat nothing that came with the request.

use std::sync::Arc;

use axum::{
    Router,
    body::Body,
    extract::{Path, Request, State, rejection::PathRejection},
    response::Response,
    routing::get,
};
use http::{
    HeaderValue, Method, StatusCode,
    header::{
        CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, LOCATION, REFERRER_POLICY,
        SET_COOKIE, X_CONTENT_TYPE_OPTIONS,
    },
    request::Parts,
};
use serde::Serialize;

use super::{App, Shared, json_response, log::Line, oxp};
use crate::{
    StoreError,
    authorization::{Answer, Back, Desk, Told},
    host::Invocation,
};

/// What is no text is no id either.
type PathOf = Result<Path<String>, PathRejection>;

fn text_of(path: PathOf) -> String {
    path.map(|Path(text)| text).unwrap_or_default()
}

/// Adds the three paths.
pub(super) fn routes(router: Router<Arc<App>>) -> Router<Arc<App>> {
    router
        .route("/authorization/challenges/{id}", get(status))
        .route("/authorization/challenges/{id}/start", get(start))
        .route("/authorization/{provider}/callback", get(callback))
}

/// OXP 1.0, Authorization Challenges: always a 200.
async fn status(State(app): Shared, id: PathOf, request: Request) -> Response {
    #[derive(Serialize)]
    struct Status {
        status: &'static str,
    }
    let Some(desk) = &app.desk else {
        return oxp::not_found(app.opentool.is_some());
    };
    if desk.checks_ask_for_credentials() {
        let line = Line::of(&app, &request, "check");
        if let Err(rejection) = app.admit(request).await {
            return oxp::rejected(&rejection, line);
        }
        line.needless();
    }
    let status = desk.status(&text_of(id)).await.unwrap_or_else(|error| {
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

async fn start(State(app): Shared, id: PathOf, request: Request) -> Response {
    let Some(desk) = &app.desk else {
        return oxp::not_found(app.opentool.is_some());
    };
    let base = Invocation::of(request.extensions()).base_url;
    let (parts, _) = request.into_parts();
    let answer = desk
        .start(&text_of(id), base.as_deref(), &parts.headers)
        .await;
    match answer {
        Ok(Answer::Redirect { url, cookie }) => redirect(&url, &cookie),
        Ok(Answer::Page(told)) => page(told),
        Err(error) => page(unavailable(&error)),
    }
}

async fn callback(State(app): Shared, provider: PathOf, request: Request) -> Response {
    let Some(desk) = &app.desk else {
        return oxp::not_found(app.opentool.is_some());
    };
    // A code works once; looking whether there is something must not use it up.
    if request.method() != Method::GET {
        return oxp::method_not_allowed();
    }
    let (parts, _) = request.into_parts();
    page(told(desk, &text_of(provider), &parts).await)
}

async fn told(desk: &Arc<Desk>, provider: &str, request: &Parts) -> Told {
    let Some(back) = back_in(request.uri.query().unwrap_or_default()) else {
        return Told::OtherBrowser;
    };
    let base = Invocation::of(&request.extensions).base_url;
    let told = desk.callback(provider, back, base.as_deref(), &request.headers);
    let told = told.await.unwrap_or_else(|error| unavailable(&error));
    if told == Told::OtherBrowser {
        tracing::warn!("a redirect came back that does not belong to this browser, or too late");
    }
    told
}

fn unavailable(error: &StoreError) -> Told {
    tracing::error!(%error, "a challenge cannot be answered");
    Told::Unavailable
}

/// RFC 6749, 3.1: nothing may be there twice.
fn back_in(query: &str) -> Option<Back> {
    let url = reqwest::Url::parse(&format!("http://localhost/?{query}")).ok()?;
    let mut back = Back::default();
    for (name, value) in url.query_pairs() {
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

fn redirect(url: &str, cookie: &str) -> Response {
    let (Ok(url), Ok(cookie)) = (HeaderValue::try_from(url), HeaderValue::try_from(cookie)) else {
        return page(Told::Failed);
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

fn page(told: Told) -> Response {
    let (status, title, text) = words_of(told);
    let body = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n\
         <title>{title}</title>\n<h1>{title}</h1>\n<p>{text}</p>\n</html>\n"
    );
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    let policy = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
    for (name, value) in [
        (CONTENT_TYPE, "text/html; charset=utf-8"),
        (CONTENT_SECURITY_POLICY, policy),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
        (CACHE_CONTROL, "no-store"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

fn words_of(told: Told) -> (StatusCode, &'static str, &'static str) {
    match told {
        Told::Completed => (
            StatusCode::OK,
            "Done",
            "Access is allowed. You can close this window.",
        ),
        Told::NotAllowed => (
            StatusCode::OK,
            "Not allowed",
            "You have not allowed access, and nothing was changed. You can close this window.",
        ),
        Told::TooLittle => (
            StatusCode::OK,
            "Not everything was allowed",
            "The tool needs everything that was asked for. Go back to where you found the link, \
             ask again, and allow all of it.",
        ),
        Told::Expired => (
            StatusCode::NOT_FOUND,
            "This link has expired",
            "Go back to where you found it and ask again.",
        ),
        Told::OtherBrowser => (
            StatusCode::BAD_REQUEST,
            "This page does not belong to this browser",
            "It was opened in another browser, or too late. Go back to where you found the link \
             and follow it again.",
        ),
        Told::InUse => (
            StatusCode::CONFLICT,
            "This link is being used",
            "It works once. You can close this window.",
        ),
        Told::Failed => (
            StatusCode::OK,
            "It did not work",
            "Access was not given. Go back to where you found the link and ask again.",
        ),
        Told::Unavailable => (
            StatusCode::SERVICE_UNAVAILABLE,
            "Not available at the moment",
            "Go back to where you found the link and follow it again in a moment.",
        ),
    }
}
