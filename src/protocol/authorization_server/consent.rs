//! The page on which a user agrees to sign in for a client, and the pages on which a sign-in ends.

use axum::response::Response;
use http::{HeaderValue, StatusCode, header::SET_COOKIE};
use reqwest::Url;

use super::super::challenges::page::{Page, escaped, isolated};
use crate::{
    ServerInfo,
    auth::sign_in::{ClientError, SignInConsent, SignInPage},
};

/// The style of the button that does not continue.
const SECOND_BUTTON: &str =
    ".second { margin-top: .75rem; border-color: var(--line); background: none; color: inherit }\n";

/// Returns the page that says who asks, for what, and where the browser returns to.
pub(super) fn consent_page(consent: &SignInConsent, cookie: &str, info: &ServerInfo) -> Response {
    let Ok(cookie) = HeaderValue::try_from(cookie) else {
        return ending_page(None, info);
    };
    let url = Url::parse(&consent.redirect_uri).ok();
    let scheme = url.as_ref().map_or("https", Url::scheme);
    // Chromium also applies this directive to the redirects that follow the form: to the provider, to
    // wherever it leads, and to the client. On a local machine, the provider may not use TLS.
    let local = if consent.is_https { "" } else { " http:" };
    let client = match scheme {
        "https" => String::new(),
        scheme => format!(" {scheme}:"),
    };
    let page = Page {
        style: SECOND_BUTTON,
        title: &format!("Sign in to {}?", escaped(info.title())),
        main: &main_of(consent, url.as_ref(), info),
        form_action: &format!("'self' https:{local}{client}"),
        // With `no-referrer`, browsers would send the form with `Origin: null`, as from another
        // site.
        referrer_policy: "same-origin",
    };
    let mut response = page.response(info);
    response.headers_mut().insert(SET_COOKIE, cookie);
    response
}

fn main_of(consent: &SignInConsent, url: Option<&Url>, info: &ServerInfo) -> String {
    let (server, provider) = (isolated(info.title()), isolated(&consent.provider));
    let form = escaped(&consent.form);
    let (who, to) = (who_asks(consent), destination(url, &consent.redirect_uri));
    let scopes = scopes_of(&consent.scopes);
    format!(
        "<h1>Sign in to {server}?</h1>\n\
         {who}\
         <h2>What it will be able to do</h2>\n\
         <p>Call the tools of {server} as you, until you sign out there or your access ends.</p>\n\
         {scopes}\
         <h2>Where you will return to</h2>\n\
         {to}\
         <p>Continue only if you have just asked to connect this application yourself.</p>\n\
         <form method=\"post\">\n\
         <input type=\"hidden\" name=\"form\" value=\"{form}\">\n\
         <button type=\"submit\" name=\"answer\" value=\"continue\">Continue to {provider}</button>\n\
         <button type=\"submit\" name=\"answer\" value=\"cancel\" class=\"second\">Cancel</button>\n\
         </form>\n\
         <p class=\"note\">{provider} asks you to sign in. This page has not allowed anything \
         yet.</p>\n"
    )
}

/// Says who asks: the host that vouches for the client, not only the name that it gives itself.
fn who_asks(consent: &SignInConsent) -> String {
    let name = match consent.name.as_str() {
        "" => "an application without a name".to_owned(),
        name => format!("an application that calls itself <q>{}</q>", isolated(name)),
    };
    match &consent.host {
        Some(host) => format!(
            "<p>The request comes from <strong>{}</strong>, for {name}.</p>\n",
            isolated(host)
        ),
        None => format!("<p>The request comes from {name}. Nobody has checked this name.</p>\n"),
    }
}

fn destination(url: Option<&Url>, redirect_uri: &str) -> String {
    let host = url.and_then(Url::host_str).unwrap_or_default();
    match url.map_or("", Url::scheme) {
        "https" => format!(
            "<p class=\"user\"><strong>{}</strong> <code>{}</code></p>\n",
            isolated(host),
            escaped(redirect_uri).replace('/', "/<wbr>")
        ),
        "http" => "<p class=\"user\"><strong>A program on this computer</strong></p>\n\
                   <p>Any program that runs on this computer can ask for this.</p>\n"
            .to_owned(),
        _ => {
            let scheme = redirect_uri.split(':').next().unwrap_or_default();
            format!(
                "<p class=\"user\"><strong>The application on this computer that opens {}: \
                 links</strong></p>\n",
                isolated(scheme)
            )
        }
    }
}

fn scopes_of(scopes: &[String]) -> String {
    if scopes.is_empty() {
        return String::new();
    }
    // Many scopes are URLs, which fit on one line of a telephone only if they may break here.
    let item = |scope: &String| {
        let name = escaped(scope).replace('/', "/<wbr>");
        format!("<li><code>{name}</code></li>\n")
    };
    let items: String = scopes.iter().map(item).collect();
    format!("<p>With these permissions:</p>\n<ul>\n{items}</ul>\n")
}

/// Returns the page on which a sign-in ends; without a reason, the server is not available.
pub(super) fn ending_page(reason: Option<SignInPage>, info: &ServerInfo) -> Response {
    let (status, title, text) = content_of(reason);
    let text = text.replace("{server}", &isolated(info.title()));
    let page = Page {
        style: "",
        title,
        main: &format!("<h1 class=\"again\">{title}</h1>\n<p>{text}</p>\n"),
        form_action: "'none'",
        referrer_policy: "no-referrer",
    };
    let mut response = page.response(info);
    *response.status_mut() = status;
    response
}

fn content_of(reason: Option<SignInPage>) -> (StatusCode, &'static str, String) {
    const REFUSED: &str = "This application cannot sign you in";
    let refused = |text: &str| {
        let text = format!("{text}. Nothing was changed. You can close this window.");
        (StatusCode::BAD_REQUEST, REFUSED, text)
    };
    match reason {
        None => (
            StatusCode::SERVICE_UNAVAILABLE,
            "Not available at the moment",
            "Wait a minute. Then go back to the application and sign in again.".to_owned(),
        ),
        Some(SignInPage::Expired) => (
            StatusCode::BAD_REQUEST,
            "This page cannot be used any more",
            "It was opened in another browser, was used already, or is too old. Go back to the \
             application and sign in again."
                .to_owned(),
        ),
        Some(SignInPage::Request(why)) => refused(&format!("Its request is not valid: {why}")),
        Some(SignInPage::Client(ClientError::Unknown)) => refused(
            "{server} does not know its client_id. Remove {server} from the application and add it \
             again",
        ),
        Some(SignInPage::Client(ClientError::Document(why))) => {
            refused(&format!("{{server}} cannot check who it is: {why}"))
        }
        Some(SignInPage::Client(ClientError::RedirectUri)) => {
            refused("Its redirect_uri is not one that it has registered")
        }
        Some(SignInPage::Client(ClientError::NotListed)) => {
            let (_, title, text) = refused("Whoever runs {server} has not listed it");
            (StatusCode::FORBIDDEN, title, text)
        }
    }
}
