//! The pages: one that asks for consent, and one for each result.
//!
//! They have no scripts, styles or external resources. Only the consent page contains text from
//! others, such as the user's id, and that text is escaped.

use axum::{body::Body, response::Response};
use http::{
    HeaderValue, StatusCode,
    header::{
        CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, SET_COOKIE,
        X_CONTENT_TYPE_OPTIONS,
    },
};

use crate::oauth::{CallbackPage, ConsentPage};

/// The name of the form's field.
pub(super) const FIELD: &str = "form";

/// The page for a result.
pub(super) fn result_page(result: CallbackPage) -> Response {
    let (status, title, text) = texts_of(result);
    let mut response = html(title, &format!("<p>{text}</p>\n"), "'none'");
    *response.status_mut() = status;
    let policy = HeaderValue::from_static("no-referrer");
    response.headers_mut().insert(REFERRER_POLICY, policy);
    response
}

/// The page that names the caller, the user and the scopes, with a button to continue.
pub(super) fn consent_page(consent: &ConsentPage, cookie: &str) -> Response {
    let Ok(cookie) = HeaderValue::try_from(cookie) else {
        return result_page(CallbackPage::Failed);
    };
    let provider = escaped(&consent.provider);
    let title = format!("Allow access to your {provider} account?");
    // Chromium also applies this directive to the redirects that follow a form's submission, and
    // the provider's further redirects are unknown here. On a local machine, they may not use TLS.
    let form_action = if consent.is_https {
        "'self' https:"
    } else {
        "'self' https: http:"
    };
    let mut response = html(&title, &content_of(consent, &provider), form_action);
    let headers = response.headers_mut();
    headers.insert(SET_COOKIE, cookie);
    // With `no-referrer`, browsers would send the form with `Origin: null`, as from another site.
    let policy = HeaderValue::from_static("same-origin");
    headers.insert(REFERRER_POLICY, policy);
    response
}

fn content_of(consent: &ConsentPage, provider: &str) -> String {
    let name = match consent.caller.as_str() {
        "" => "An anonymous caller".to_owned(),
        name => format!("<strong><bdi>{}</bdi></strong>", escaped(name)),
    };
    // Isolated, because right-to-left text would reorder the text next to it.
    let user = format!("<strong><bdi>{}</bdi></strong>", escaped(&consent.user));
    let scope = |scope: &String| format!("<li><code>{}</code></li>\n", escaped(scope));
    let scopes: String = consent.scopes.iter().map(scope).collect();
    let permissions = match scopes.as_str() {
        "" => "<p>No specific permissions are requested.</p>\n".to_owned(),
        scopes => format!("<p>These permissions are requested:</p>\n<ul>\n{scopes}</ul>\n"),
    };
    let form = escaped(&consent.form);
    format!(
        "<p>{name} is asking to use your <strong>{provider}</strong> account in calls for the user \
         {user}.</p>\n{permissions}\
         <p>Continue only if you are this user and requested this yourself: tools called for this \
         user will then be able to use your account. Otherwise, close this window; no access has \
         been granted.</p>\n\
         <form method=\"post\">\n\
         <input type=\"hidden\" name=\"{FIELD}\" value=\"{form}\">\n\
         <button type=\"submit\">Continue to {provider}</button>\n\
         </form>\n"
    )
}

fn html(title: &str, content: &str, form_action: &str) -> Response {
    let body = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n\
         <title>{title}</title>\n<h1>{title}</h1>\n{content}</html>\n"
    );
    let policy = format!(
        "default-src 'none'; base-uri 'none'; form-action {form_action}; frame-ancestors 'none'"
    );
    let policy = HeaderValue::try_from(policy).expect("our own policies are ASCII");
    let mut response = Response::new(Body::from(body));
    let headers = response.headers_mut();
    headers.insert(CONTENT_SECURITY_POLICY, policy);
    for (name, value) in [
        (CONTENT_TYPE, "text/html; charset=utf-8"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (CACHE_CONTROL, "no-store"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
    }
    escaped
}

fn texts_of(result: CallbackPage) -> (StatusCode, &'static str, &'static str) {
    match result {
        CallbackPage::Completed => (
            StatusCode::OK,
            "Done",
            "Access is allowed. You can close this window.",
        ),
        CallbackPage::NotAllowed => (
            StatusCode::OK,
            "Not allowed",
            "You have not allowed access, and nothing was changed. You can close this window.",
        ),
        CallbackPage::InsufficientScopes => (
            StatusCode::OK,
            "Not everything was allowed",
            "The tool needs everything that was asked for. Go back to where you found the link, \
             ask again, and allow all of it.",
        ),
        CallbackPage::Expired => (
            StatusCode::NOT_FOUND,
            "This link has expired",
            "Go back to where you found it and ask again.",
        ),
        CallbackPage::OtherBrowser => (
            StatusCode::BAD_REQUEST,
            "This page cannot be used in this browser",
            "It was opened in another browser, or too late. Go back to where you found the link \
             and follow it again.",
        ),
        CallbackPage::InUse => (
            StatusCode::CONFLICT,
            "This link is being used",
            "It can be used only once. You can close this window.",
        ),
        CallbackPage::Failed => (
            StatusCode::OK,
            "It did not work",
            "Access was not granted. Go back to where you found the link and ask again.",
        ),
        CallbackPage::Unavailable => (
            StatusCode::SERVICE_UNAVAILABLE,
            "Not available at the moment",
            "Go back to where you found the link and follow it again in a moment.",
        ),
    }
}
