//! The way for a client to obtain a token, as rejections state it in `WWW-Authenticate`.
//!
//! API Gateway and function URLs rename this header, so the bodies of rejections repeat it.
//! References: RFC 6750, section 3; RFC 9728, section 5.1.

use std::sync::atomic::{AtomicBool, Ordering};

use http::HeaderValue;

use super::{
    app::AppState,
    refusal::{Refusal, SignInHint},
};
use crate::call::rejection::Rejection;

/// The path of the metadata: RFC 9728, section 3.
pub(super) const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

/// Returns the parameters of `WWW-Authenticate`; none if the refusal is not about credentials.
pub(super) fn parameters(refusal: &Refusal) -> Vec<(&'static str, String)> {
    let (error, scope, sign_in) = match refusal {
        Refusal::Unauthenticated(why, sign_in) => {
            let scope = sign_in.as_ref().map(|it| it.scope.clone());
            (why.is_invalid.then_some("invalid_token"), scope, sign_in)
        }
        Refusal::Rejected(Rejection::InsufficientScope { scopes, .. }, sign_in) => {
            let scope = scopes.join(" ");
            (Some("insufficient_scope"), Some(scope), sign_in)
        }
        _ => return Vec::new(),
    };
    let url = sign_in.as_ref().and_then(|it| it.metadata_url.clone());
    let parameters = [
        ("error", error.map(str::to_owned)),
        ("scope", scope.filter(|it| !it.is_empty())),
        ("resource_metadata", url),
    ];
    let parameters = parameters.into_iter();
    parameters
        .filter_map(|(name, value)| Some((name, value?)))
        .collect()
}

/// Returns the value of `WWW-Authenticate`.
pub(super) fn www_authenticate(refusal: &Refusal) -> HeaderValue {
    let parameters: Vec<_> = parameters(refusal)
        .into_iter()
        .map(|(name, value)| format!("{name}=\"{}\"", quoted(&value)))
        .collect();
    let text = format!("Bearer {}", parameters.join(", "));
    let value = HeaderValue::try_from(text.trim_end());
    value.unwrap_or(HeaderValue::from_static("Bearer"))
}

/// Quotes a text (RFC 9110, 5.6.4).
fn quoted(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"")
}

/// Returns the same facts as a sentence; empty if nobody can sign in.
pub(super) fn sentence(sign_in: Option<&SignInHint>) -> String {
    let url = sign_in.and_then(|it| it.metadata_url.as_deref());
    url.map_or_else(String::new, |url| {
        format!(" The identity provider that issues tokens is named at {url}.")
    })
}

/// Returns the way to sign in, for a request to a protocol with this resource path. Warns once of
/// metadata that clients cannot reach.
pub(super) fn sign_in(
    app: &AppState,
    event_base: Option<&str>,
    resource_path: &str,
) -> Option<Box<SignInHint>> {
    static HAS_WARNED: AtomicBool = AtomicBool::new(false);
    let (auth, public_url) = (&app.engine.auth, &app.public_url);
    if !auth.has_issuers() {
        return None;
    }
    let base = public_url.resolve(event_base);
    let has_stage = public_url.configured.is_none() && event_base.is_some_and(has_path);
    let problem = match base {
        None => {
            "clients cannot learn where to sign in: the server's URL is unknown; set \
             TOOLS_PUBLIC_URL"
        }
        Some(_) if has_stage => {
            "clients that do not read WWW-Authenticate cannot learn where to sign in: the API's \
             stage is in the URL, so that /.well-known/ at its root does not reach this function; \
             use a function URL or a custom domain"
        }
        Some(_) => "",
    };
    if !problem.is_empty() && !HAS_WARNED.swap(true, Ordering::Relaxed) {
        tracing::warn!("{problem}");
    }
    Some(Box::new(SignInHint {
        // Not where RFC 9728 inserts the well-known path: with a prefix that API Gateway maps, only
        // paths below the prefix reach the function. Clients take the URL as it is.
        metadata_url: base.map(|base| format!("{base}{WELL_KNOWN}{resource_path}")),
        scope: auth.scopes().join(" "),
    }))
}

fn has_path(url: &str) -> bool {
    let authority = url.split_once("://").map_or(url, |(_, rest)| rest);
    authority.trim_end_matches('/').contains('/')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_cannot_end_the_quoted_string() {
        let rejection = Rejection::InsufficientScope {
            tool: "A.B@1.0.0".into(),
            scopes: vec![r#"a"b\c"#.into()],
        };
        let value = www_authenticate(&rejection.into());
        let expected = r#"Bearer error="insufficient_scope", scope="a\"b\\c""#;
        assert_eq!(value, expected);
    }
}
