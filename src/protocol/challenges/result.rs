//! The pages for results: one for each outcome.

use axum::response::Response;
use http::StatusCode;

use super::super::user_page::Ending;
use crate::{ServerInfo, oauth::ChallengePage};

/// Returns the page for a result.
pub(super) fn result_page(result: ChallengePage, info: &ServerInfo) -> Response {
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
    let ending = Ending {
        status,
        mark,
        title,
        text: text.into(),
    };
    ending.response(info)
}
