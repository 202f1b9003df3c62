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
    admission::AppState,
    json_response::{insert, json_response, to_json},
    pages::check_credentials,
    problem,
    user_page::{
        FIELD, Page, ending, escaped, form_action, form_in, isolated, redirect, scope_list,
    },
};
use crate::{
    ServerInfo,
    oauth::{
        Broker, Browser, BrowserResponse, ChallengeAsker, ChallengePage, ChallengeResponse,
        ConsentPage, Parameters,
    },
};

/// The state that the pages need.
#[derive(Clone)]
struct ChallengePages {
    app: Arc<AppState>,
    broker: Arc<Broker>,
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
async fn status(State(pages): State<ChallengePages>, id: PathText, request: Request) -> Response {
    if pages.broker.authenticates_checks()
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
    let mut response = json_response(StatusCode::OK, body);
    insert(response.headers_mut(), &[("cache-control", "no-store")]);
    response
}

async fn consent(State(pages): State<ChallengePages>, id: PathText, request: Request) -> Response {
    let Some(base) = pages.app.base_url(request.extensions()) else {
        return result_page(ChallengePage::Expired, &pages.app.info);
    };
    let browser = Browser::new(&base, request.headers());
    let response = pages.broker.consent_page(&text_of(id), browser).await;
    browser_response(response, &pages.app.info)
}

async fn start(State(pages): State<ChallengePages>, id: PathText, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let Some(base) = pages.app.base_url(&parts.extensions) else {
        return result_page(ChallengePage::Expired, &pages.app.info);
    };
    let browser = Browser::new(&base, &parts.headers);
    let form = form_in(body, LARGEST_FORM).await;
    let token = form.as_ref().and_then(|form| form.get(FIELD));
    let response = pages.broker.start(&text_of(id), browser, token).await;
    browser_response(response, &pages.app.info)
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
        (Some(_), None) => return result_page(ChallengePage::Expired, &pages.app.info),
        (None, _) => return result_page(ChallengePage::OtherBrowser, &pages.app.info),
    };
    let (provider, browser) = (text_of(provider), Browser::new(&base, &parts.headers));
    #[cfg(feature = "sign-in")]
    if let Some(server) = authorization_server::of_callback(&pages.app, &provider, &query) {
        let response = server.callback(query, browser).await;
        return authorization_server::browser_response(response, &pages.app.info);
    }
    let page = pages.broker.callback(&provider, query, browser).await;
    browser_response(page.map(BrowserResponse::Page), &pages.app.info)
}

fn browser_response(
    response: Result<ChallengeResponse, ChallengePage>,
    info: &ServerInfo,
) -> Response {
    match response {
        Ok(BrowserResponse::Consent { page, cookie }) => consent_page(&page, &cookie, info),
        Ok(BrowserResponse::Redirect { url, cookies }) => {
            redirect(&url, &cookies).unwrap_or_else(|| result_page(ChallengePage::Failed, info))
        }
        Ok(BrowserResponse::Page(page)) | Err(page) => {
            if page == ChallengePage::OtherBrowser {
                tracing::warn!(
                    "rejected a form or a callback that belongs to another browser or came too late"
                );
            }
            result_page(page, info)
        }
    }
}

/// Returns the page that names the server, the caller, the scopes and the user, with a button to
/// continue.
fn consent_page(
    consent: &ConsentPage<ChallengeAsker>,
    cookie: &str,
    info: &ServerInfo,
) -> Response {
    let (server, provider) = (escaped(&info.title), escaped(&consent.provider));
    let action = form_action(consent.is_https, None);
    let page = Page {
        title: &format!("Allow {server} to use your {provider} account?"),
        main: &main_of(consent, info),
        style: "",
        form_action: Some(&action),
    };
    page.with_cookie(cookie, info)
}

fn main_of(consent: &ConsentPage<ChallengeAsker>, info: &ServerInfo) -> String {
    let (server, provider) = (isolated(&info.title), isolated(&consent.provider));
    let caller = match consent.asker.caller.as_str() {
        "" => "an anonymous caller".to_owned(),
        name => format!("<strong>{}</strong>", isolated(name)),
    };
    let scopes = if consent.scopes.is_empty() {
        format!(
            "<p>{server} asks for no particular permissions. {provider} decides what that \
             allows.</p>\n"
        )
    } else {
        let scopes = scope_list(&consent.scopes);
        format!("<h2>{server} will be able to</h2>\n{scopes}")
    };
    let user = isolated(&consent.asker.user);
    let form = escaped(&consent.form);
    format!(
        "<h1>Allow {server} to use your {provider} account?</h1>\n\
         <p>The request comes from {caller}.</p>\n\
         {scopes}\
         <h2>For the user</h2>\n\
         <p class=\"user\"><strong>{user}</strong></p>\n\
         <p>Continue only if this is you and you asked for this yourself. {server} will then be \
         able to use your account in every request for this user.</p>\n\
         <h2>What happens next</h2>\n\
         <p>{provider} asks you to sign in and to agree. After that, you can close this window. \
         You can withdraw access at any time in the settings of your {provider} account.</p>\n\
         <form method=\"post\">\n\
         <input type=\"hidden\" name=\"{FIELD}\" value=\"{form}\">\n\
         <button type=\"submit\">Continue to {provider}</button>\n\
         </form>\n\
         <p class=\"note\">If you are not sure, close this window. This page has not allowed \
         anything yet.</p>\n"
    )
}

/// Returns the page for a result.
fn result_page(result: ChallengePage, info: &ServerInfo) -> Response {
    let (status, mark, title, text) = match result {
        ChallengePage::Completed => (
            StatusCode::OK,
            "done",
            "Done",
            "<p>{server} can now use your account. You can close this window.</p>\n\
             <p>You can withdraw access at any time in the settings of the account that you \
             chose.</p>",
        ),
        ChallengePage::NotAllowed => (
            StatusCode::OK,
            "closed",
            "Not allowed",
            "<p>You did not allow access, and nothing was changed. You can close this window.</p>",
        ),
        ChallengePage::InsufficientScopes => (
            StatusCode::OK,
            "again",
            "Not everything was allowed",
            "<p>{server} needs everything that it asked for. Go back to where you found the \
             link, ask again, and allow all of it.</p>",
        ),
        ChallengePage::Expired => (
            StatusCode::NOT_FOUND,
            "again",
            "This link has expired",
            "<p>Go back to where you found the link and ask for a new one.</p>",
        ),
        ChallengePage::OtherBrowser => (
            StatusCode::BAD_REQUEST,
            "again",
            "This page cannot be used in this browser",
            "<p>It was opened in another browser, or too long ago. Go back to where you found \
             the link and follow it again.</p>",
        ),
        ChallengePage::InUse => (
            StatusCode::CONFLICT,
            "closed",
            "This link is being used",
            "<p>A link works only once, and this one is being used in another window. You can \
             close this window.</p>",
        ),
        ChallengePage::Failed => (
            StatusCode::OK,
            "again",
            "It did not work",
            "<p>{server} has not been given access. Go back to where you found the link and ask \
             for a new one.</p>",
        ),
        ChallengePage::Unavailable => (
            StatusCode::SERVICE_UNAVAILABLE,
            "again",
            "Not available at the moment",
            "<p>Wait a minute. Then go back to where you found the link and follow it again.</p>",
        ),
    };
    ending(status, mark, title, text, info)
}
