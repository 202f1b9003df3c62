//! The header that tells a client how to obtain a token.
//!
//! API Gateway and function URLs rename this header, so the bodies of rejections repeat it.
//! References: RFC 6750, section 3; RFC 9728, section 5.1.

use http::HeaderValue;

use crate::call::rejection::{Rejection, SignIn};

/// The value of `WWW-Authenticate` for a rejection.
pub(super) fn www_authenticate(rejection: &Rejection) -> HeaderValue {
    let mut parameters = Vec::new();
    let mut sign_in = None;
    let mut scope = String::new();
    match rejection {
        Rejection::Unauthenticated(why, hint) => {
            if why.is_invalid {
                parameters.push(("error", "invalid_token"));
            }
            sign_in = hint.as_ref();
            scope = hint.as_ref().map_or(scope, |hint| hint.scope.clone());
        }
        Rejection::InsufficientScope(insufficient) => {
            parameters.push(("error", "insufficient_scope"));
            sign_in = insufficient.sign_in.as_ref();
            scope = insufficient.scopes.join(" ");
        }
        _ => {}
    }
    if !scope.is_empty() {
        parameters.push(("scope", &scope));
    }
    let url = sign_in.and_then(|it| it.metadata_url.as_deref());
    parameters.extend(url.map(|url| ("resource_metadata", url)));
    let parameters: Vec<_> = parameters
        .into_iter()
        .map(|(name, value)| format!("{name}=\"{}\"", quoted(value)))
        .collect();
    let text = format!("Bearer {}", parameters.join(", "));
    let value = HeaderValue::try_from(text.trim_end());
    value.unwrap_or(HeaderValue::from_static("Bearer"))
}

/// RFC 9110, 5.6.4.
fn quoted(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"")
}

/// The same facts as a sentence; empty if nobody can sign in.
pub(super) fn sentence(sign_in: Option<&SignIn>) -> String {
    let Some(sign_in) = sign_in else {
        return String::new();
    };
    let url = sign_in.metadata_url.as_deref();
    url.map_or_else(String::new, |url| {
        format!(" The identity provider that issues tokens is named at {url}.")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::rejection::InsufficientScope;

    #[test]
    fn scopes_cannot_end_the_quoted_string() {
        let rejection = Rejection::InsufficientScope(Box::new(InsufficientScope {
            tool: "A.B@1.0.0".into(),
            scopes: vec![r#"a"b\c"#.into()],
            sign_in: None,
        }));
        let value = www_authenticate(&rejection);
        let expected = r#"Bearer error="insufficient_scope", scope="a\"b\\c""#;
        assert_eq!(value, expected);
    }
}
