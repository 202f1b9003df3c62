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
use http::{
    HeaderName, Uri,
    header::{HOST, ORIGIN},
    uri::Authority,
};

use crate::{
    hosts::HostName,
    protocol::problem,
    serve::settings::{self, InvalidSetting},
};

const BLOCKS: &str = "This local server blocks requests from web pages.";

/// The hosts that requests may name, and whose pages may send requests.
pub(super) struct AllowedHosts {
    hosts: Vec<HostName>,
    /// True if other machines can reach the server, at addresses that the server may not know. A
    /// browser names an address as the host only if it requests that very address; DNS rebinding
    /// needs a name.
    allows_any_address: bool,
}

impl AllowedHosts {
    /// Reads `ALLOWED_HOSTS` for a server that listens at this address; `None` allows all hosts. The
    /// host of the public URL is always allowed.
    pub(super) fn from_environment(
        listens_at: IpAddr,
        public_url: Option<&str>,
    ) -> Result<Option<Self>, InvalidSetting> {
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
        let mut hosts = names.iter().map(parse).collect::<Result<Vec<_>, _>>()?;
        let public_url = public_url.and_then(|url| url.parse::<Uri>().ok());
        hosts.extend(public_url.and_then(|url| HostName::parse(url.host()?)));
        Ok(Some(Self {
            hosts,
            allows_any_address: !listens_at.is_loopback(),
        }))
    }

    /// Rejects requests to `router` that name a host that is not allowed.
    pub(super) fn protect(self, router: Router) -> Router {
        router.layer(middleware::from_fn_with_state(Arc::new(self), guard))
    }

    fn check(&self, request: &Request) -> Result<(), String> {
        // The host of an absolute target, the format for requests to proxies.
        let target = request.uri().authority().map(Authority::as_str);
        let target =
            target.map(|it| HostName::in_authority(it).ok_or_else(|| unreadable("target")));
        // Programs may omit `Host`; no browser does.
        let host = in_header(request, &HOST, HostName::in_authority)?;
        let origin = in_header(request, &ORIGIN, HostName::in_origin)?;
        let is_listed = |host: &HostName| host.is_this_machine() || self.hosts.contains(host);
        let is_address = |host: &HostName| matches!(host, HostName::Address(_));
        let is_host =
            |host: &HostName| is_listed(host) || self.allows_any_address && is_address(host);
        for named in target.transpose()?.iter().chain(&host) {
            if !is_host(named) {
                return Err(not_allowed(named));
            }
        }
        match origin.filter(|it| !is_listed(it) && host.as_ref() != Some(it)) {
            Some(origin) => Err(not_allowed(&origin)),
            None => Ok(()),
        }
    }
}

async fn guard(State(allowed): State<Arc<AllowedHosts>>, request: Request, next: Next) -> Response {
    match allowed.check(&request) {
        Ok(()) => next.run(request).await,
        Err(detail) => problem::forbidden(&detail),
    }
}

/// Reads the host in a header that may occur only once.
fn in_header(
    request: &Request,
    name: &HeaderName,
    parse: fn(&str) -> Option<HostName>,
) -> Result<Option<HostName>, String> {
    let mut values = request.headers().get_all(name).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    let value = value.to_str().ok().filter(|_| values.next().is_none());
    let host = value.and_then(parse);
    host.map(Some)
        .ok_or_else(|| unreadable(&format!("{name} header")))
}

fn not_allowed(host: &HostName) -> String {
    format!(
        "{BLOCKS} The request names {host}; if that is right, add {host} to ALLOWED_HOSTS, the \
         names that are allowed besides localhost, and start the server again."
    )
}

fn unreadable(place: &str) -> String {
    format!("{BLOCKS} The request's {place} does not name one host with or without a port.")
}
