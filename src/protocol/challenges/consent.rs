//! The page that asks for consent, before the redirect to the provider.

use axum::response::Response;
use http::{HeaderValue, header::SET_COOKIE};

use super::{
    page::{Page, escaped, isolated},
    result::result_page,
};
use crate::{
    ServerInfo,
    oauth::{CallbackPage, ConsentPage, RequestedScope},
};

/// The name of the form's field.
pub(super) const FIELD: &str = "form";

/// Returns the page that names the server, the caller, the scopes and the user, with a button to
/// continue.
pub(super) fn consent_page(consent: &ConsentPage, cookie: &str, info: &ServerInfo) -> Response {
    let Ok(cookie) = HeaderValue::try_from(cookie) else {
        return result_page(CallbackPage::Failed, info);
    };
    let (server, provider) = (escaped(info.title()), escaped(&consent.provider));
    let page = Page {
        style: "",
        title: &format!("Allow {server} to use your {provider} account?"),
        main: &main_of(consent, info),
        // Chromium also applies this directive to the redirects that follow a form's submission,
        // and the provider's further redirects are unknown here. On a local machine, they may not
        // use TLS.
        form_action: if consent.is_https {
            "'self' https:"
        } else {
            "'self' https: http:"
        },
        // With `no-referrer`, browsers would send the form with `Origin: null`, as from another
        // site.
        referrer_policy: "same-origin",
    };
    let mut response = page.response(info);
    response.headers_mut().insert(SET_COOKIE, cookie);
    response
}

fn main_of(consent: &ConsentPage, info: &ServerInfo) -> String {
    let (server, provider) = (isolated(info.title()), isolated(&consent.provider));
    let caller = match consent.caller.as_str() {
        "" => "an anonymous caller".to_owned(),
        name => format!("<strong>{}</strong>", isolated(name)),
    };
    let user = isolated(&consent.user);
    let scopes = scopes_of(&consent.scopes, &server, &provider);
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

/// Returns the list of the permissions.
fn scopes_of(scopes: &[RequestedScope], server: &str, provider: &str) -> String {
    if scopes.is_empty() {
        return format!(
            "<p>{server} asks for no particular permissions. {provider} decides what that \
             allows.</p>\n"
        );
    }
    let items: String = scopes.iter().map(item_of).collect();
    format!("<h2>{server} will be able to</h2>\n<ul>\n{items}</ul>\n")
}

fn item_of(scope: &RequestedScope) -> String {
    // Many scopes are URLs, which fit on one line of a telephone only if they may break here.
    let name = escaped(&scope.name).replace('/', "/<wbr>");
    match &scope.description {
        Some(description) => {
            let description = isolated(description);
            format!("<li>{description} <code>{name}</code></li>\n")
        }
        None => format!("<li><code>{name}</code></li>\n"),
    }
}
