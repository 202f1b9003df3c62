//! The pages that users see in a browser, and the parts that they share: the document, its style, its
//! headers and its form.
//!
//! Pages have no scripts, and load nothing. Their only style is in the document, and the content
//! security policy admits it by its hash. Text from others, such as a user's id, is escaped, and
//! isolated where its direction would reorder the text next to it.

mod challenge;
#[cfg(feature = "sign-in")]
mod sign_in;

use base64::{Engine, prelude::BASE64_STANDARD};
use http::{
    HeaderValue, Response, StatusCode,
    header::{
        CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, LOCATION, REFERRER_POLICY,
        SET_COOKIE, X_CONTENT_TYPE_OPTIONS,
    },
};
use sha2::{Digest, Sha256};

use crate::oauth::{ConsentPage, RequestedScope};
pub use challenge::challenge_response;
#[cfg(feature = "sign-in")]
pub use sign_in::{UNREADABLE_FORM, sign_in_response};

const STYLE: &str = include_str!("pages/style.css");

/// The title of the server and the URL for questions, as pages show them.
#[derive(Clone, Copy, Debug)]
pub struct ShownServer<'a> {
    /// The title.
    pub title: &'a str,
    /// The URL for questions: `https://` or `mailto:`.
    pub support_url: Option<&'a str>,
}

/// The name of the field that the form of a consent page sends back.
pub const FIELD: &str = "form";

/// Returns the page on which a flow ends. The `mark` is the class of the title, for the mark above it.
/// In `text`, which is HTML, `{server}` is the server's title.
fn ending(
    status: StatusCode,
    mark: &str,
    title: &str,
    text: &str,
    shown: ShownServer<'_>,
) -> Response<String> {
    let text = text.replace("{server}", &isolated(shown.title));
    let page = Page {
        title,
        main: &format!("<h1 class=\"{mark}\">{title}</h1>\n{text}\n"),
        style: "",
    };
    let mut response = page.response("'none'", "no-referrer", shown);
    *response.status_mut() = status;
    response
}

/// A page. Its texts are HTML.
struct Page<'a> {
    title: &'a str,
    main: &'a str,
    /// Added to the style that all pages share.
    style: &'static str,
}

impl Page<'_> {
    /// Returns the response with this page, which names the server, and the sources to which a form may
    /// lead.
    fn response(
        &self,
        form_action: &str,
        referrer: &str,
        shown: ShownServer<'_>,
    ) -> Response<String> {
        let own = self.style;
        let style = BASE64_STANDARD.encode(Sha256::digest(format!("{STYLE}{own}")));
        let policy = format!(
            "default-src 'none'; style-src 'sha256-{style}'; base-uri 'none'; \
             form-action {form_action}; frame-ancestors 'none'"
        );
        let (title, main) = (self.title, self.main);
        let (server, support) = (isolated(shown.title), support_of(shown));
        let mut response = Response::new(format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n\
             <title>{title}</title>\n<style>{STYLE}{own}</style>\n</head>\n<body>\n\
             <header><p>{server}</p></header>\n<main>\n{main}</main>\n{support}</body>\n</html>\n"
        ));
        for (name, value) in [
            (CONTENT_SECURITY_POLICY, &*policy),
            (CONTENT_TYPE, "text/html; charset=utf-8"),
            (X_CONTENT_TYPE_OPTIONS, "nosniff"),
            (REFERRER_POLICY, referrer),
            (CACHE_CONTROL, "no-store"),
        ] {
            response.headers_mut().insert(name, header_value(value));
        }
        response
    }

    /// Returns the response with this page, which asks for consent. A client that is not reached over
    /// TLS has a `client_scheme`.
    fn asking<A>(
        &self,
        consent: &ConsentPage<A>,
        client_scheme: Option<&str>,
        shown: ShownServer<'_>,
    ) -> Response<String> {
        // Chromium also applies this directive to the redirects that follow the form: to the provider,
        // to wherever it leads, and to the client. On a local machine, the provider may not use TLS.
        let local = if consent.is_https { "" } else { " http:" };
        let client = client_scheme.map_or_else(String::new, |scheme| format!(" {scheme}:"));
        let sources = format!("'self' https:{local}{client}");
        // With `no-referrer`, browsers would send the form with `Origin: null`, as from another site.
        let mut response = self.response(&sources, "same-origin", shown);
        let cookie = header_value(&consent.cookie);
        response.headers_mut().insert(SET_COOKIE, cookie);
        response
    }
}

/// Returns the link to the owner's support; empty if there is none.
fn support_of(shown: ShownServer<'_>) -> String {
    let Some(url) = shown.support_url else {
        return String::new();
    };
    let address = url
        .strip_prefix("mailto:")
        .and_then(|it| it.split('?').next());
    let page = || url.trim_start_matches("https://").trim_end_matches('/');
    let text = escaped(address.unwrap_or_else(page));
    let url = escaped(url);
    format!(
        "<footer><p>Questions? <a href=\"{url}\" rel=\"noopener noreferrer\">{text}</a></p>\
         </footer>\n"
    )
}

/// Returns the list of scopes.
fn scope_list(scopes: &[RequestedScope]) -> String {
    let item = |scope: &RequestedScope| {
        // Many scopes are URLs, which fit on one line of a telephone only if they may break here.
        let name = escaped(&scope.name).replace('/', "/<wbr>");
        let description = scope.description.as_deref();
        let description = description.map_or_else(String::new, |it| format!("{} ", isolated(it)));
        format!("<li>{description}<code>{name}</code></li>\n")
    };
    let items: String = scopes.iter().map(item).collect();
    format!("<ul>\n{items}</ul>\n")
}

/// Returns escaped text whose direction does not affect the text next to it.
fn isolated(text: &str) -> String {
    format!("<bdi>{}</bdi>", escaped(text))
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
        .replace('\'', "&#39;")
}

/// Returns a redirect that sets cookies.
fn redirect(url: &str, cookies: &[String]) -> Response<String> {
    let mut response = Response::new(String::new());
    *response.status_mut() = StatusCode::SEE_OTHER;
    let headers = response.headers_mut();
    headers.insert(LOCATION, header_value(url));
    for cookie in cookies {
        headers.append(SET_COOKIE, header_value(cookie));
    }
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    response
}

fn header_value(text: &str) -> HeaderValue {
    HeaderValue::try_from(text).expect("our own policies, URLs and cookies are ASCII")
}
