//! The page that asks for consent, before the redirect to the provider.

use axum::response::Response;

use super::super::user_page::{FIELD, Page, escaped, form_action, isolated, scope_list};
use crate::{
    ServerInfo,
    oauth::{ChallengeAsker, ConsentPage},
};

/// Returns the page that names the server, the caller, the scopes and the user, with a button to
/// continue.
pub(super) fn consent_page(
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
