//! Protection against web pages.
//!
//! A page in a developer's browser can send requests to this machine and its network, across
//! origins or by DNS rebinding, and tools may do more than the page's author should be able to
//! request. Browsers always name the host of a request and, where it matters, the page's origin.

use std::{net::IpAddr, sync::Arc};

use axum::{
    Router,
    extract::{Request, State},
    middleware::{self, Next},
    response::Response,
};
use http::{HeaderName, header};

use crate::{
    host_name::HostName,
    protocol::problem,
    serve::settings::{self, InvalidSetting},
};

/// The hosts that requests may name, and whose pages may send requests.
pub(super) struct AllowedHosts {
    hosts: Vec<HostName>,
    /// True if other machines can reach the server, at addresses that the server may not know. A
    /// browser names an address as the host only if it requests that very address; DNS rebinding
    /// needs a name.
    allows_any_address: bool,
}

impl AllowedHosts {
    /// Reads `ALLOWED_HOSTS` for a server that listens at this address; `None` allows all hosts.
    pub(super) fn from_environment(listens_at: IpAddr) -> Result<Option<Self>, InvalidSetting> {
        let names = settings::list("ALLOWED_HOSTS", "")?;
        if names.iter().any(|name| name == "*") {
            return Ok(None);
        }
        let parse = |name: &String| {
            HostName::parse(name).ok_or_else(|| {
                InvalidSetting(format!(
                    "ALLOWED_HOSTS has '{name}', which is not a host: write names and addresses \
                     without a scheme or port, as in app.example, 192.0.2.7 or [2001:db8::1], or \
                     * for all"
                ))
            })
        };
        Ok(Some(Self {
            hosts: names.iter().map(parse).collect::<Result<_, _>>()?,
            allows_any_address: !listens_at.is_loopback(),
        }))
    }

    /// Rejects requests to `router` that name a host that is not allowed.
    pub(super) fn protect(self, router: Router) -> Router {
        router.layer(middleware::from_fn_with_state(Arc::new(self), guard))
    }

    fn check(&self, request: &Request) -> Result<(), String> {
        // The host of an absolute target, the form for requests to proxies.
        let target = request.uri().authority();
        let target = target.map(|it| HostName::in_authority(it.as_str()).ok_or("target"));
        // Programs may omit `Host`; no browser does.
        let host = in_header(request, &header::HOST, HostName::in_authority);
        let origin = in_header(request, &header::ORIGIN, HostName::in_origin);
        let parsed = (|| Ok((target.transpose()?, host?, origin?)))();
        let (target, host, origin) = parsed.map_err(unreadable)?;
        let is_listed = |host: &HostName| host.is_this_machine() || self.hosts.contains(host);
        let is_address = |host: &HostName| matches!(host, HostName::Address(_));
        for named in target.iter().chain(&host) {
            if !is_listed(named) && !(self.allows_any_address && is_address(named)) {
                return Err(not_allowed("is for", named));
            }
        }
        match origin {
            Some(origin) if !is_listed(&origin) && host.as_ref() != Some(&origin) => {
                Err(not_allowed("comes from a page of", &origin))
            }
            _ => Ok(()),
        }
    }
}

async fn guard(State(allowed): State<Arc<AllowedHosts>>, request: Request, next: Next) -> Response {
    match allowed.check(&request) {
        Ok(()) => next.run(request).await,
        Err(detail) => problem::forbidden(&detail),
    }
}

/// Reads the host in a header that may occur only once. The error is the header's name.
fn in_header<'a>(
    request: &Request,
    name: &'a HeaderName,
    parse: fn(&str) -> Option<HostName>,
) -> Result<Option<HostName>, &'a str> {
    let mut values = request.headers().get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => {
            let host = value.to_str().ok().and_then(parse);
            host.map(Some).ok_or(name.as_str())
        }
        _ => Err(name.as_str()),
    }
}

fn not_allowed(relation: &str, host: &HostName) -> String {
    format!(
        "This local server blocks requests from web pages. The request {relation} {host}; if that \
         is right, add {host} to ALLOWED_HOSTS, the names that are allowed besides localhost, and \
         start the server again."
    )
}

fn unreadable(place: &str) -> String {
    format!(
        "This local server blocks requests from web pages. The request's {place} does not name one \
         host with or without a port; only ALLOWED_HOSTS=* accepts such requests, but it also \
         accepts requests from every web page."
    )
}
