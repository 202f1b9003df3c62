//! The pages for results: one for each outcome.

use axum::response::Response;
use http::{HeaderValue, StatusCode, header::REFERRER_POLICY};

use super::page::{Page, isolated};
use crate::{ServerInfo, oauth::CallbackPage};

/// The page for a result.
pub(super) fn result_page(result: CallbackPage, info: &ServerInfo) -> Response {
    let title = title_of(result);
    let (mark, text) = (mark_of(result), text_of(result, &isolated(info.title())));
    let page = Page {
        title,
        main: &format!("<h1 class=\"{mark}\">{title}</h1>\n{text}\n"),
        form_action: "'none'",
    };
    let mut response = page.response(info);
    *response.status_mut() = status_of(result);
    let policy = HeaderValue::from_static("no-referrer");
    response.headers_mut().insert(REFERRER_POLICY, policy);
    response
}

fn status_of(result: CallbackPage) -> StatusCode {
    match result {
        CallbackPage::Completed
        | CallbackPage::NotAllowed
        | CallbackPage::InsufficientScopes
        | CallbackPage::Failed => StatusCode::OK,
        CallbackPage::Expired => StatusCode::NOT_FOUND,
        CallbackPage::OtherBrowser => StatusCode::BAD_REQUEST,
        CallbackPage::InUse => StatusCode::CONFLICT,
        CallbackPage::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
    }
}

/// The class of the title, for the mark above it.
fn mark_of(result: CallbackPage) -> &'static str {
    match result {
        CallbackPage::Completed => "done",
        CallbackPage::NotAllowed | CallbackPage::InUse => "closed",
        _ => "again",
    }
}

fn title_of(result: CallbackPage) -> &'static str {
    match result {
        CallbackPage::Completed => "Done",
        CallbackPage::NotAllowed => "Not allowed",
        CallbackPage::InsufficientScopes => "Not everything was allowed",
        CallbackPage::Expired => "This link has expired",
        CallbackPage::OtherBrowser => "This page cannot be used in this browser",
        CallbackPage::InUse => "This link is being used",
        CallbackPage::Failed => "It did not work",
        CallbackPage::Unavailable => "Not available at the moment",
    }
}

/// `server` is HTML.
fn text_of(result: CallbackPage, server: &str) -> String {
    match result {
        CallbackPage::Completed => format!(
            "<p>{server} can now use your account. You can close this window.</p>\n\
             <p>You can withdraw access at any time in the settings of the account that you \
             chose.</p>"
        ),
        CallbackPage::NotAllowed => "<p>You did not allow access, and nothing was changed. You \
                                     can close this window.</p>"
            .to_owned(),
        CallbackPage::InsufficientScopes => {
            format!(
                "<p>{server} needs everything that it asked for. Go back to where you found the \
                 link, ask again, and allow all of it.</p>"
            )
        }
        CallbackPage::Expired => {
            "<p>Go back to where you found the link and ask for a new one.</p>".to_owned()
        }
        CallbackPage::OtherBrowser => "<p>It was opened in another browser, or too long ago. Go \
                                       back to where you found the link and follow it again.</p>"
            .to_owned(),
        CallbackPage::InUse => {
            "<p>A link works only once, and this one is being used in another window. You can close \
             this window.</p>"
                .to_owned()
        }
        CallbackPage::Failed => {
            format!(
                "<p>{server} has not been given access. Go back to where you found the link and \
                 ask for a new one.</p>"
            )
        }
        CallbackPage::Unavailable => {
            "<p>Wait a minute. Then go back to where you found the link and follow it again.</p>"
                .to_owned()
        }
    }
}
