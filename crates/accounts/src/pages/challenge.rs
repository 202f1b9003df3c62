//! The page on which a user lets tools act for them at a provider, and the pages on which that ends.

use http::{Response, StatusCode};

use super::{FIELD, Page, ShownServer, ending, escaped, isolated, redirect, scope_list};
use crate::oauth::{
    BrowserResponse, ChallengeAsker, ChallengePage, ChallengeResponse, ConsentPage,
};

/// Returns the response to a browser that is on its way through a challenge.
pub fn challenge_response(
    response: Result<ChallengeResponse, ChallengePage>,
    shown: ShownServer<'_>,
) -> Response<String> {
    match response {
        Ok(BrowserResponse::Consent(page)) => consent_page(&page, shown),
        Ok(BrowserResponse::Redirect { url, cookies }) => redirect(&url, &cookies),
        Ok(BrowserResponse::Page(page)) | Err(page) => {
            if page == ChallengePage::OtherBrowser {
                tracing::warn!(
                    "rejected a form or a callback that belongs to another browser or came too late"
                );
            }
            result_page(page, shown)
        }
    }
}

/// Returns the page that names the server, the caller, the scopes and the user, with a button to
/// continue.
fn consent_page(consent: &ConsentPage<ChallengeAsker>, shown: ShownServer<'_>) -> Response<String> {
    let (server, provider) = (isolated(shown.title), isolated(&consent.provider));
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
    let main = format!(
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
    );
    let (server, provider) = (escaped(shown.title), escaped(&consent.provider));
    let page = Page {
        title: &format!("Allow {server} to use your {provider} account?"),
        main: &main,
        style: "",
    };
    page.asking(consent, None, shown)
}

/// Returns the page for a result.
fn result_page(result: ChallengePage, shown: ShownServer<'_>) -> Response<String> {
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
    ending(status, mark, title, text, shown)
}
