//! What the pages share: the check of credentials, and HTML responses, whose policy names
//! everything that the browser may run and apply.

use axum::{body::Body, extract::Request, response::Response};
#[cfg(feature = "oauth")]
use bytes::Bytes;
#[cfg(feature = "oauth")]
use http_body_util::{BodyExt, Limited};

#[cfg(feature = "explorer")]
pub(super) use lambda_tools_accounts::pages::hash_source;

use super::{
    First,
    admission::AppState,
    codec::Codec,
    exchange::{log_refusal, response_to_refused},
};
#[cfg(feature = "oauth")]
use crate::oauth::Parameters;
use crate::{Caller, ServerInfo, arrival::Arrival, observe::request_log::RequestLog};

/// Creates the response of a page with its Content-Security-Policy and Referrer-Policy.
#[cfg(feature = "explorer")]
pub(super) fn html_response(html: impl Into<Body>, policy: &str, referrer: &str) -> Response {
    lambda_tools_accounts::pages::html_response(html.into(), policy, referrer)
}

/// Returns the response with a page for a browser.
#[cfg(feature = "oauth")]
pub(super) fn page_of(page: http::Response<String>) -> Response {
    page.map(Body::from)
}

/// Reads a body of at most this many bytes.
#[cfg(feature = "oauth")]
pub(super) async fn limited(body: Body, largest: usize) -> Option<Bytes> {
    let body = Limited::new(body, largest).collect().await;
    Some(body.ok()?.to_bytes())
}

/// Reads a form of at most this many bytes, in which no field occurs twice.
#[cfg(feature = "oauth")]
pub(super) async fn form_in(body: Body, largest: usize) -> Option<Parameters> {
    Parameters::parse(&limited(body, largest).await?)
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
