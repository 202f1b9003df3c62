//! Pages for browsers, whose policy names everything that the browser may run and apply.

#[cfg(feature = "oauth")]
mod challenge;
#[cfg(feature = "sign-in")]
mod sign_in;
#[cfg(feature = "oauth")]
mod user_page;

use base64::{Engine, prelude::BASE64_STANDARD};
use http::{
    HeaderValue, Response,
    header::{
        CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY,
        X_CONTENT_TYPE_OPTIONS,
    },
};
use sha2::{Digest, Sha256};

#[cfg(feature = "oauth")]
pub use challenge::challenge_response;
#[cfg(feature = "sign-in")]
pub use sign_in::{UNREADABLE_FORM, sign_in_response};
#[cfg(feature = "oauth")]
pub use user_page::{FIELD, ShownServer};

/// Returns the `hash-source` of a style or a script in the document (CSP Level 3, section 2.3.1).
pub fn hash_source(content: &str) -> String {
    format!(
        "'sha256-{}'",
        BASE64_STANDARD.encode(Sha256::digest(content))
    )
}

/// Creates the response of a page with its Content-Security-Policy and Referrer-Policy.
///
/// # Panics
/// If one of them is not ASCII.
pub fn html_response<B>(html: B, policy: &str, referrer: &str) -> Response<B> {
    let mut response = Response::new(html);
    for (name, value) in [
        (CONTENT_SECURITY_POLICY, policy),
        (CONTENT_TYPE, "text/html; charset=utf-8"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, referrer),
        (CACHE_CONTROL, "no-store"),
    ] {
        let value = HeaderValue::try_from(value).expect("our own policies are ASCII");
        response.headers_mut().insert(name, value);
    }
    response
}
