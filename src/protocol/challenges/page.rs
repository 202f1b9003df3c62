//! The pages: one that asks, and one for each end.
//!
//! No scripts, no styles, nothing from elsewhere. What others have chosen, such as the user's id,
//! is on the page that asks only, escaped.

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

/// What happened.
pub(super) fn page(told: CallbackPage) -> Response {
    let (status, title, text) = words_of(told);
    let mut response = html(title, &format!("<p>{text}</p>\n"), "'none'");
    *response.status_mut() = status;
    let policy = HeaderValue::from_static("no-referrer");
    response.headers_mut().insert(REFERRER_POLICY, policy);
    response
}

/// Who asks for what, and a button.
pub(super) fn consent(asked: &ConsentPage, cookie: &str) -> Response {
    let Ok(cookie) = HeaderValue::try_from(cookie) else {
        return page(CallbackPage::Failed);
    };
    let provider = escaped(&asked.provider);
    let title = format!("Allow the use of your account at {provider}?");
    // Chromium holds the redirects behind a form to this as well, and where the provider sends its
    // users from there is not known here. On a machine of one's own it may have no TLS.
    let form_action = if asked.is_https {
        "'self' https:"
    } else {
        "'self' https: http:"
    };
    let mut response = html(&title, &content_of(asked, &provider), form_action);
    let headers = response.headers_mut();
    headers.insert(SET_COOKIE, cookie);
    // With `no-referrer` browsers would send the form with `Origin: null`, as another site's.
    let policy = HeaderValue::from_static("same-origin");
    headers.insert(REFERRER_POLICY, policy);
    response
}

fn content_of(asked: &ConsentPage, provider: &str) -> String {
    let who = match asked.caller.as_str() {
        "" => "Somebody who did not have to say who they are".to_owned(),
        name => format!("<strong><bdi>{}</bdi></strong>", escaped(name)),
    };
    // Isolated: a text that runs from right to left would turn around what is beside it.
    let user = format!("<strong><bdi>{}</bdi></strong>", escaped(&asked.user));
    let scope = |scope: &String| format!("<li><code>{}</code></li>\n", escaped(scope));
    let scopes: String = asked.scopes.iter().map(scope).collect();
    let rights = match scopes.as_str() {
        "" => "<p>No particular rights are asked for.</p>\n".to_owned(),
        scopes => format!("<p>These rights are asked for:</p>\n<ul>\n{scopes}</ul>\n"),
    };
    let form = escaped(&asked.form);
    format!(
        "<p>{who} asks to use your account at <strong>{provider}</strong>, in calls for the user \
         {user}.</p>\n{rights}\
         <p>Continue only if you are this user and have asked for this yourself: tools that are \
         called for this user then use your account. Otherwise close this window; nothing has been \
         allowed.</p>\n\
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
    let mut all = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => all.push_str("&amp;"),
            '<' => all.push_str("&lt;"),
            '>' => all.push_str("&gt;"),
            '"' => all.push_str("&quot;"),
            '\'' => all.push_str("&#39;"),
            other => all.push(other),
        }
    }
    all
}

fn words_of(told: CallbackPage) -> (StatusCode, &'static str, &'static str) {
    match told {
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
        CallbackPage::TooLittle => (
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
            "This page does not belong to this browser",
            "It was opened in another browser, or too late. Go back to where you found the link \
             and follow it again.",
        ),
        CallbackPage::InUse => (
            StatusCode::CONFLICT,
            "This link is being used",
            "It works once. You can close this window.",
        ),
        CallbackPage::Failed => (
            StatusCode::OK,
            "It did not work",
            "Access was not given. Go back to where you found the link and ask again.",
        ),
        CallbackPage::Unavailable => (
            StatusCode::SERVICE_UNAVAILABLE,
            "Not available at the moment",
            "Go back to where you found the link and follow it again in a moment.",
        ),
    }
}
