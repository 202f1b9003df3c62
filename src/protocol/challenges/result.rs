//! The pages for results: one for each outcome.

use axum::response::Response;
use http::StatusCode;

use super::page::{Page, isolated};
use crate::{ServerInfo, oauth::CallbackPage};

/// Returns the page for a result.
pub(super) fn result_page(result: CallbackPage, info: &ServerInfo) -> Response {
    let (status, mark, title, text) = content_of(result);
    let text = text.replace("{server}", &isolated(info.title()));
    let page = Page {
        style: "",
        title,
        main: &format!("<h1 class=\"{mark}\">{title}</h1>\n{text}\n"),
        form_action: "'none'",
        referrer_policy: "no-referrer",
    };
    let mut response = page.response(info);
    *response.status_mut() = status;
    response
}

/// Returns the status, the class of the title for the mark above it, the title, and the text, in
/// which `{server}` is the server's title.
fn content_of(result: CallbackPage) -> (StatusCode, &'static str, &'static str, &'static str) {
    match result {
        CallbackPage::Completed => (
            StatusCode::OK,
            "done",
            "Done",
            "<p>{server} can now use your account. You can close this window.</p>\n\
             <p>You can withdraw access at any time in the settings of the account that you \
             chose.</p>",
        ),
        CallbackPage::NotAllowed => (
            StatusCode::OK,
            "closed",
            "Not allowed",
            "<p>You did not allow access, and nothing was changed. You can close this window.</p>",
        ),
        CallbackPage::InsufficientScopes => (
            StatusCode::OK,
            "again",
            "Not everything was allowed",
            "<p>{server} needs everything that it asked for. Go back to where you found the \
             link, ask again, and allow all of it.</p>",
        ),
        CallbackPage::Expired => (
            StatusCode::NOT_FOUND,
            "again",
            "This link has expired",
            "<p>Go back to where you found the link and ask for a new one.</p>",
        ),
        CallbackPage::OtherBrowser => (
            StatusCode::BAD_REQUEST,
            "again",
            "This page cannot be used in this browser",
            "<p>It was opened in another browser, or too long ago. Go back to where you found \
             the link and follow it again.</p>",
        ),
        CallbackPage::InUse => (
            StatusCode::CONFLICT,
            "closed",
            "This link is being used",
            "<p>A link works only once, and this one is being used in another window. You can \
             close this window.</p>",
        ),
        CallbackPage::Failed => (
            StatusCode::OK,
            "again",
            "It did not work",
            "<p>{server} has not been given access. Go back to where you found the link and ask \
             for a new one.</p>",
        ),
        CallbackPage::Unavailable => (
            StatusCode::SERVICE_UNAVAILABLE,
            "again",
            "Not available at the moment",
            "<p>Wait a minute. Then go back to where you found the link and follow it again.</p>",
        ),
    }
}
