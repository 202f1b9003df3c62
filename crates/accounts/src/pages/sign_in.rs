//! The page on which a user agrees to sign in for a client, and the pages on which a sign-in ends.

use http::{HeaderValue, Response, StatusCode, header::RETRY_AFTER};
use reqwest::Url;

use super::{FIELD, Page, ShownServer, ending, escaped, isolated, redirect, scope_list};
use crate::{
    StoreError,
    auth::sign_in::{SignInAsker, SignInPage, SignInResponse},
    oauth::{BrowserResponse, ConsentPage},
};

/// The end of a sign-in whose form cannot be read.
pub const UNREADABLE_FORM: SignInPage = SignInPage::Request("the form cannot be read");

/// The style of the button that does not continue.
const SECOND_BUTTON: &str =
    ".second { margin-top: .75rem; border-color: var(--line); background: none; color: inherit }\n";

/// Returns the response to a browser that is on its way through a sign-in.
pub fn sign_in_response(
    response: Result<SignInResponse, StoreError>,
    shown: ShownServer<'_>,
) -> Response<String> {
    match response {
        Ok(BrowserResponse::Consent(page)) => consent_page(&page, shown),
        Ok(BrowserResponse::Redirect { url, cookies }) => redirect(&url, &cookies),
        Ok(BrowserResponse::Page(page)) => {
            tracing::warn!(?page, "a sign-in has ended on a page of this server");
            ending_page(Some(page), shown)
        }
        // Anyone can fill what sign-ins have of the memory, which is no fault of this server.
        Err(error) if error.is_full() => {
            tracing::warn!(%error, "a sign-in could not be processed");
            let mut response = ending_page(None, shown);
            *response.status_mut() = StatusCode::TOO_MANY_REQUESTS;
            let wait = HeaderValue::from_static("60");
            response.headers_mut().insert(RETRY_AFTER, wait);
            response
        }
        Err(error) => {
            tracing::error!(%error, "a sign-in could not be processed");
            ending_page(None, shown)
        }
    }
}

/// Returns the page that says who asks, for what, and where the browser returns to.
fn consent_page(consent: &ConsentPage<SignInAsker>, shown: ShownServer<'_>) -> Response<String> {
    let (server, provider) = (isolated(shown.title), isolated(&consent.provider));
    let (asker, form) = (&consent.asker, escaped(&consent.form));
    let url = Url::parse(&asker.redirect_uri).ok();
    let (who, to) = (
        who_asks(asker),
        destination(url.as_ref(), &asker.redirect_uri),
    );
    let scopes = match &consent.scopes[..] {
        [] => String::new(),
        scopes => format!("<p>With these permissions:</p>\n{}", scope_list(scopes)),
    };
    let main = format!(
        "<h1>Sign in to {server}?</h1>\n\
         {who}\
         <h2>What it will be able to do</h2>\n\
         <p>Call the tools of {server} as you, until you sign out there or your access ends.</p>\n\
         {scopes}\
         <h2>Where you will return to</h2>\n\
         {to}\
         <p>Continue only if you have just asked to connect this application yourself.</p>\n\
         <form method=\"post\">\n\
         <input type=\"hidden\" name=\"{FIELD}\" value=\"{form}\">\n\
         <button type=\"submit\" name=\"answer\" value=\"continue\">Continue to {provider}</button>\n\
         <button type=\"submit\" name=\"answer\" value=\"cancel\" class=\"second\">Cancel</button>\n\
         </form>\n\
         <p class=\"note\">{provider} asks you to sign in. This page has not allowed anything \
         yet.</p>\n"
    );
    let page = Page {
        title: &format!("Sign in to {}?", escaped(shown.title)),
        main: &main,
        style: SECOND_BUTTON,
    };
    let scheme = url.as_ref().map(Url::scheme).filter(|it| *it != "https");
    page.asking(consent, scheme, shown)
}

/// Says who asks: the host that vouches for the client, not only the name that it gives itself.
fn who_asks(asker: &SignInAsker) -> String {
    let name = match asker.name.as_str() {
        "" => "an application without a name".to_owned(),
        name => format!("an application that calls itself <q>{}</q>", isolated(name)),
    };
    match &asker.host {
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

/// Returns the page on which a sign-in ends; without a reason, the server is not available.
fn ending_page(reason: Option<SignInPage>, shown: ShownServer<'_>) -> Response<String> {
    let again = |status, title: &str, text: &str| ending(status, "again", title, text, shown);
    let refused = |status, text: &str| {
        let text = format!("<p>{text}. Nothing was changed. You can close this window.</p>");
        again(status, "This application cannot sign you in", &text)
    };
    let invalid = |text: &str| refused(StatusCode::BAD_REQUEST, text);
    match reason {
        None => again(
            StatusCode::SERVICE_UNAVAILABLE,
            "Not available at the moment",
            "<p>Wait a minute. Then go back to the application and sign in again.</p>",
        ),
        Some(SignInPage::Expired) => again(
            StatusCode::BAD_REQUEST,
            "This page cannot be used any more",
            "<p>It was opened in another browser, was used already, or is too old. Go back to the \
             application and sign in again.</p>",
        ),
        Some(SignInPage::Request(why)) => invalid(&format!("Its request is not valid: {why}")),
        Some(SignInPage::Unknown) => invalid(
            "{server} does not know its client_id. Remove {server} from the application and add it \
             again",
        ),
        Some(SignInPage::Document(why)) => {
            invalid(&format!("{{server}} cannot check who it is: {why}"))
        }
        Some(SignInPage::RedirectUri) => {
            invalid("Its redirect_uri is not one that it has registered")
        }
        Some(SignInPage::NotListed) => refused(
            StatusCode::FORBIDDEN,
            "Whoever runs {server} has not listed it",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_memory_that_strangers_have_filled_is_no_error_of_the_server() {
        let shown = ShownServer {
            title: "Tools",
            support_url: None,
        };
        for (error, status, wait) in [
            (StoreError::full("x"), 429, Some("60")),
            (StoreError::unavailable("x"), 503, None),
        ] {
            let response = sign_in_response(Err(error), shown);
            assert_eq!(response.status(), status);
            let header = response.headers().get("retry-after");
            assert_eq!(header.map(|it| it.to_str().unwrap()), wait);
        }
    }
}
