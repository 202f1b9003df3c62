//! What the pages share: the check of credentials, and HTML responses, whose policy names
//! everything that the browser may run and apply.

use axum::{body::Body, extract::Request, response::Response};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::{
    HeaderValue,
    header::{
        CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY,
        X_CONTENT_TYPE_OPTIONS,
    },
};
use sha2::{Digest, Sha256};

use super::{
    First,
    admission::AppState,
    codec::Codec,
    exchange::{log_refusal, response_to_refused},
};
use crate::{Caller, ServerInfo, arrival::Arrival, observe::request_log::RequestLog};

/// Returns the `hash-source` of a style or a script in the document (CSP Level 3, section 2.3.1).
pub(super) fn hash_source(content: &str) -> String {
    format!("'sha256-{}'", STANDARD.encode(Sha256::digest(content)))
}

/// Creates the response of a page with its Content-Security-Policy and Referrer-Policy.
pub(super) fn html_response(html: impl Into<Body>, policy: &str, referrer: &str) -> Response {
    let mut response = Response::new(html.into());
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

/// Checks the credentials of a request that belongs to no protocol. `operation` is the request's
/// name in the log. Absent credentials are logged only with `logs_absence`: a browser sends none when
/// it opens a page.
pub(super) async fn check_credentials(
    app: &AppState,
    request: Request,
    operation: &'static str,
    logs_absence: bool,
) -> Result<Caller, Response> {
    let arrival = Arrival::new(app.engine.clock.instant(), request.extensions());
    let headers = request.headers();
    let mut log = RequestLog::begin(&app.observer, arrival.clone(), headers, operation, None);
    let refusal = match app.admit(request, &arrival, |_| false).await {
        Ok(admitted) => {
            log.discard();
            return Ok(admitted.caller);
        }
        Err(refusal) => refusal,
    };
    let base = arrival.invocation.base_url.as_deref();
    let refusal = app.with_sign_in(refusal, base, First::DECLARATION.resource_path);
    if refusal.lacks_credentials() && !logs_absence {
        log.discard();
    } else {
        log_refusal(&refusal, &mut log);
    }
    let protocol = First::new(&ServerInfo::default());
    let format = <First as Codec>::Format::default();
    Err(response_to_refused(&protocol, &format, &refusal))
}
