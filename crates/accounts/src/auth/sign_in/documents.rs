//! The metadata documents of clients, fetched from the URLs that are their ids.
//!
//! Anyone can send a URL. So a document is fetched only from a host name whose addresses are all
//! global, over TLS, at the usual port, without redirects, within 5 seconds and 5 KiB. The
//! connection uses the addresses that were checked, so a name that resolves differently the second
//! time gains nothing. One document of a host is fetched at a time, and a failure is remembered, so
//! that nobody keeps others waiting, or sends this server to a host again and again.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::{Duration, Instant},
};

use reqwest::{
    Client, ClientBuilder, StatusCode, Url,
    dns::{Addrs, Name, Resolve, Resolving},
    redirect::Policy,
};
use serde::Deserialize;
use tokio::{
    sync::{self, Semaphore},
    time::timeout,
};

use crate::{
    clock::Clock,
    http_client::{body_up_to, is_bare, max_age},
};
use lambda_tools_core::addresses::only_global;

/// The time for a document, and before that for the turn of its host.
const LIMIT: Duration = Duration::from_secs(5);
/// The maximum size of a document, in bytes.
const LARGEST: usize = 5 * 1024;
/// The number of documents that are fetched at once.
const MOST_AT_ONCE: usize = 32;
/// The number of documents that are kept.
const MOST_KEPT: usize = 200;
/// The time until a document is fetched again after a failure.
const FAILURE_AGE: Duration = Duration::from_mins(1);
const SHORTEST_AGE: Duration = Duration::from_mins(5);
const LONGEST_AGE: Duration = Duration::from_hours(24);
/// The time for which a document is used while its host cannot be reached.
const LONGEST_USE: Duration = Duration::from_hours(7 * 24);

/// The metadata of a client, in its document or in its registration: RFC 7591, section 2.
#[derive(Deserialize)]
pub(super) struct ClientMetadata {
    pub(super) client_id: Option<String>,
    pub(super) client_name: Option<String>,
    pub(super) redirect_uris: Vec<String>,
    pub(super) token_endpoint_auth_method: Option<String>,
}

/// The documents, and how they are fetched.
pub(super) struct Documents {
    clock: Clock,
    /// Created by the first request.
    client: OnceLock<reqwest::Result<Client>>,
    kept: Mutex<HashMap<String, KeptDocument>>,
    fetches: Semaphore,
    /// The hosts of which a document is being fetched.
    hosts: Mutex<HashMap<String, Arc<sync::Mutex<()>>>>,
}

/// A document, or the reason why there is none.
type Fetched = Result<Arc<ClientMetadata>, &'static str>;

#[derive(Clone)]
struct KeptDocument {
    fetched: Fetched,
    fetched_at: Instant,
    due: Instant,
}

/// The reason why a document cannot be fetched.
enum FetchError {
    /// Its host cannot be reached or is overloaded.
    Away(&'static str),
    Unusable(&'static str),
}

/// A resolver of host names that finds only the addresses that the internet reaches.
pub struct OnlyGlobal<R>(pub R);

impl<R: Resolve> Resolve for OnlyGlobal<R> {
    fn resolve(&self, name: Name) -> Resolving {
        let found = self.0.resolve(name);
        Box::pin(async move {
            let addresses = only_global(found.await?.collect());
            let addresses = addresses.ok_or("the host is not on the internet")?;
            Ok::<Addrs, _>(Box::new(addresses.into_iter()))
        })
    }
}

/// The resolver of the operating system.
struct System;

impl Resolve for System {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            Ok::<Addrs, _>(Box::new(found.collect::<Vec<_>>().into_iter()))
        })
    }
}

/// Returns the builder of the HTTP client that fetches documents. Anyone chooses their URLs: with any
/// resolver but [`OnlyGlobal`], strangers reach the network that the resolver knows.
pub fn document_client(resolver: impl Resolve + 'static) -> ClientBuilder {
    Client::builder()
        .https_only(true)
        .redirect(Policy::none())
        // A proxy would resolve the name itself.
        .no_proxy()
        .timeout(LIMIT)
        // A kept connection would outlive the check of its address.
        .pool_max_idle_per_host(0)
        .user_agent("lambda_tools")
        .dns_resolver(Arc::new(resolver))
}

/// Returns true for a URL that may be a client's id: with a path and a name as its host, and spelled
/// as parsers spell it.
pub(super) fn is_document_url(text: &str, url: &Url) -> bool {
    // Parsers turn addresses in all their spellings into one, which is not a name.
    let has_name = url
        .domain()
        .is_some_and(|it| it.contains('.') && !it.ends_with('.'));
    let is_https = url.scheme() == "https" && url.port().is_none();
    is_bare(url) && has_name && is_https && url.path() != "/" && url.as_str() == text
}

/// Reads a document, which must be about the client at this URL.
fn checked(body: &[u8], url: &Url) -> Result<ClientMetadata, &'static str> {
    let metadata: ClientMetadata =
        serde_json::from_slice(body).map_err(|_| "its document is not a client's metadata")?;
    if metadata.client_id.as_deref() != Some(url.as_str()) {
        return Err("the client_id in its document is another one");
    }
    let name = metadata.client_name.as_deref().unwrap_or_default();
    if name.is_empty() || metadata.redirect_uris.is_empty() {
        return Err("its document has no client_name or no redirect_uris");
    }
    let method = metadata.token_endpoint_auth_method.as_deref();
    if method.is_some_and(|it| it != "none") {
        return Err("its document requires a token_endpoint_auth_method other than none");
    }
    Ok(metadata)
}

impl Documents {
    /// Creates the documents. Without a `client`, addresses are looked up as this machine does.
    pub(super) fn new(clock: Clock, client: Option<Client>) -> Self {
        Self {
            clock,
            client: client.map_or_else(OnceLock::new, |it| OnceLock::from(Ok(it))),
            kept: Mutex::default(),
            fetches: Semaphore::new(MOST_AT_ONCE),
            hosts: Mutex::default(),
        }
    }

    /// Returns the document at a URL, which is the client's id.
    pub(super) async fn get(&self, url: &Url) -> Fetched {
        let id = url.as_str();
        if let Some(fetched) = self.current(id) {
            return fetched;
        }
        // Waiting for others takes nothing of the time for the document.
        let turn = timeout(LIMIT, self.turn(url.host_str().unwrap_or_default())).await;
        let Ok(_turn) = turn else {
            let known = self.usable(id).map(|it| it.fetched);
            return known.unwrap_or(Err("too many documents are being fetched"));
        };
        // The request before may have fetched it.
        if let Some(fetched) = self.current(id) {
            return fetched;
        }
        let now = self.clock.instant();
        let fetched = timeout(LIMIT, self.fetch(url)).await;
        let fetched = fetched.unwrap_or(Err(FetchError::Away("its document was not sent in time")));
        let (fetched, fetched_at, age) = match fetched {
            Ok((metadata, age)) => (Ok(Arc::new(metadata)), now, age),
            Err(error) => {
                let (reason, usable) = match error {
                    FetchError::Away(reason) => (reason, self.usable(id)),
                    FetchError::Unusable(reason) => (reason, None),
                };
                let is_known = usable.is_some();
                let text = "the metadata document of a client cannot be fetched";
                tracing::warn!(client = id, reason, is_known, "{text}");
                let known = usable.map(|it| (it.fetched, it.fetched_at));
                let (fetched, fetched_at) = known.unwrap_or((Err(reason), now));
                (fetched, fetched_at, FAILURE_AGE)
            }
        };
        let new = KeptDocument {
            fetched: fetched.clone(),
            fetched_at,
            due: now + age,
        };
        let mut kept = self.lock();
        if kept.len() >= MOST_KEPT {
            // Filling it up only makes others fetch again. Failures make room first.
            let has_failures = kept.values().any(|it| it.fetched.is_err());
            kept.retain(|_, it| has_failures && it.fetched.is_ok());
        }
        kept.insert(id.to_owned(), new);
        fetched
    }

    /// Returns a document, or the reason why there is none, until it is due.
    fn current(&self, id: &str) -> Option<Fetched> {
        let kept = self.lock();
        let current = kept.get(id).filter(|it| self.clock.instant() < it.due);
        current.map(|it| it.fetched.clone())
    }

    /// Returns a document that may be used while its host is away.
    fn usable(&self, id: &str) -> Option<KeptDocument> {
        let (now, old) = (self.clock.instant(), self.lock().get(id).cloned());
        old.filter(|it| it.fetched.is_ok() && now < it.fetched_at + LONGEST_USE)
    }

    /// Waits until no other document of a host is being fetched, and few of others.
    async fn turn(&self, host: &str) -> impl Sized {
        let turn = {
            let mut hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
            hosts.retain(|_, it| Arc::strong_count(it) > 1);
            Arc::clone(hosts.entry(host.to_owned()).or_default())
        };
        (turn.lock_owned().await, self.fetches.acquire().await)
    }

    async fn fetch(&self, url: &Url) -> Result<(ClientMetadata, Duration), FetchError> {
        let new = || document_client(OnlyGlobal(System)).build();
        let client = self.client.get_or_init(new).as_ref();
        let missing = |_| FetchError::Away("TLS is not available on this machine");
        let response = client.map_err(missing)?.get(url.clone()).send();
        let silent = |_| FetchError::Away("its host does not answer, or is not on the internet");
        let response = response.await.map_err(silent)?;
        let missing = "its document is not at its URL";
        match response.status() {
            StatusCode::OK => {}
            status if status.is_server_error() => return Err(FetchError::Away(missing)),
            _ => return Err(FetchError::Unusable(missing)),
        }
        let age = max_age(response.headers()).unwrap_or_default();
        let body = body_up_to(LARGEST, response).await;
        let incomplete =
            |_| FetchError::Unusable("its document is larger than 5 KiB, or incomplete");
        let body = body.map_err(incomplete)?;
        let metadata = checked(&body, url).map_err(FetchError::Unusable)?;
        Ok((metadata, age.clamp(SHORTEST_AGE, LONGEST_AGE)))
    }

    /// Locks the documents. A poisoned lock is harmless: each change is one insertion or removal.
    fn lock(&self) -> MutexGuard<'_, HashMap<String, KeptDocument>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::REAL;

    /// Not even a connection is opened to the server on this machine.
    #[tokio::test]
    async fn documents_are_not_fetched_from_this_machine() {
        let server = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = server.local_addr().unwrap().port();
        let url = Url::parse(&format!("https://localhost:{port}/client.json")).unwrap();
        let documents = Documents::new(REAL, None);
        tokio::select! {
            fetched = documents.get(&url) => assert!(fetched.is_err()),
            _ = server.accept() => panic!("the address was not checked"),
        }
    }

    #[test]
    fn only_the_url_of_a_name_with_a_path_is_an_id() {
        let is_valid = |text: &str| Url::parse(text).is_ok_and(|url| is_document_url(text, &url));
        for text in [
            "https://claude.ai/oauth/claude-code-client-metadata",
            "https://client.example/c.json?v=1",
        ] {
            assert!(is_valid(text), "{text}");
        }
        let texts = "http://client.example/c.json https://client.example/ \
            https://client.example https://client.example:8443/c.json \
            https://client.example:443/c.json https://user@client.example/c.json \
            https://client.example/c.json#a https://client.example/a/../c.json \
            https://CLIENT.example/c.json https://client.example./c.json \
            https://localhost/c.json https://127.0.0.1/c.json https://2130706433/c.json \
            https://0x7f.1/c.json https://0177.0.0.1/c.json https://169.254.169.254/c.json \
            https://[::1]/c.json https://[::ffff:169.254.169.254]/c.json https://1.1.1.1/c.json";
        for text in texts.split(' ') {
            assert!(!is_valid(text), "{text}");
        }
    }
}
