//! Clients: who asks a user to sign in, and where codes are sent.
//!
//! Nothing about a client is stored. Its id is either the URL of its metadata document (OAuth
//! Client ID Metadata Document), or its whole registration (RFC 7591), sealed.

use reqwest::Url;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    AuthorizationServer, EndpointError, OAuthError, SignInPage,
    documents::{ClientMetadata, is_document_url},
};
use crate::{
    clock::since_epoch,
    http_client::{is_bare, is_loopback},
    oauth::EncryptionKeys,
    store::hash_of_texts,
    text::clipped,
};

/// The purpose for which registrations are sealed.
const REGISTRATION: &str = "client registration";
/// The maximum length of a client's name, in bytes; a longer one is clipped.
const LONGEST_NAME: usize = 100;
const MOST_REDIRECT_URIS: usize = 10;
/// The maximum length of a client's id, in bytes: it is a parameter of URLs.
const LONGEST_ID: usize = 4096;
/// The maximum length of a redirect URI, in bytes.
const LONGEST_URI: usize = 1024;
/// The schemes of editors that do not follow RFC 8252, 7.1, which requires a dot.
const EDITORS: [&str; 4] = ["cursor", "vscode", "vscode-insiders", "windsurf"];

/// A client.
pub(super) struct Client {
    pub(super) id: String,
    /// The name that it gives itself.
    pub(super) name: String,
    /// The host of its metadata document, which only the host's owner can write.
    pub(super) host: Option<String>,
    pub(super) redirect_uris: Vec<String>,
}

/// A registration, as it is sealed in the client's id.
#[derive(Deserialize, Serialize)]
pub(super) struct Registration {
    #[serde(rename = "n")]
    name: String,
    #[serde(rename = "r")]
    redirect_uris: Vec<String>,
    #[serde(rename = "t")]
    registered_at: u64,
}

impl Client {
    /// Returns the redirect URI of a request, which must be one of the client's, and one that the
    /// owner's list allows. Without the parameter, it is the client's only one.
    pub(super) fn redirect_uri(
        &self,
        requested: Option<&str>,
        listed: &ListedClients,
    ) -> Result<String, SignInPage> {
        let uri = match (requested, &self.redirect_uris[..]) {
            (Some(uri), all) if all.iter().any(|it| is_same_uri(it, uri)) => uri,
            (None, [only]) => only,
            _ => return Err(SignInPage::RedirectUri),
        };
        // Also here: the owner's list may have changed since the registration.
        parse_redirect_uri(uri, listed.names(uri)).ok_or(SignInPage::RedirectUri)?;
        if !listed.allows(&self.id, uri) {
            return Err(SignInPage::NotListed);
        }
        Ok(uri.to_owned())
    }

    /// Returns the client in a few words, for logs.
    pub(super) fn label(&self) -> &str {
        self.host.as_deref().unwrap_or(&self.name)
    }
}

/// Returns what records keep of a client's id, which may be a whole registration.
pub(super) fn hash_of(id: &str) -> String {
    hash_of_texts(["client", id])
}

/// Returns the registration in a client's id, if this server has issued it.
pub(super) fn registration_in(id: &str, keys: &EncryptionKeys) -> Option<Registration> {
    keys.open_text(REGISTRATION, id)
}

impl AuthorizationServer {
    /// Returns the client with this id.
    pub(super) async fn client(
        &self,
        id: &str,
        keys: &EncryptionKeys,
    ) -> Result<Client, SignInPage> {
        if id.len() > LONGEST_ID {
            return Err(SignInPage::Unknown);
        }
        let id = id.to_owned();
        if !id.starts_with("https:") {
            let registration = registration_in(&id, keys).ok_or(SignInPage::Unknown)?;
            return Ok(Client {
                id,
                name: registration.name,
                host: None,
                redirect_uris: registration.redirect_uris,
            });
        }
        let url = Url::parse(&id).ok().filter(|url| is_document_url(&id, url));
        let url = url.ok_or(SignInPage::Document("its client_id is not a valid URL"))?;
        let host = url.host_str().unwrap_or_default().to_owned();
        // A document is not even fetched if no redirect URI in it could be used.
        if !self.settings.clients.may_describe(&host) {
            return Err(SignInPage::NotListed);
        }
        let metadata = self.documents.get(&url).await;
        let metadata = metadata.map_err(SignInPage::Document)?;
        let name = metadata.client_name.as_deref().unwrap_or_default();
        Ok(Client {
            id,
            name: clipped(name, LONGEST_NAME).into_owned(),
            host: Some(host),
            redirect_uris: metadata.redirect_uris.clone(),
        })
    }

    /// Answers `POST /register`: RFC 7591, 3.2.1.
    pub async fn register(&self, body: &[u8]) -> Result<Value, EndpointError> {
        let invalid =
            |code, text| -> Result<_, EndpointError> { Err(OAuthError::new(code, text).into()) };
        let invalid_metadata = |text| invalid("invalid_client_metadata", text);
        let invalid_uri = |text| invalid("invalid_redirect_uri", text);
        let (records, listed) = (self.records().await?, &self.settings.clients);
        let Ok(metadata) = serde_json::from_slice::<ClientMetadata>(body) else {
            return invalid_metadata("The body must be a JSON object with redirect_uris");
        };
        let uris = &metadata.redirect_uris;
        if uris.is_empty() || uris.len() > MOST_REDIRECT_URIS {
            return invalid_uri("redirect_uris must have 1 to 10 items");
        }
        let is_valid = |uri: &String| parse_redirect_uri(uri, listed.names(uri)).is_some();
        if !uris.iter().all(is_valid) {
            return invalid_uri(
                "Every redirect URI must use https, be http on localhost, or have the scheme of an \
                 app, without a fragment; the server's owner can list another one \
                 (TOOLS_SIGN_IN_CLIENTS)",
            );
        }
        if !uris.iter().any(|uri| listed.allows_redirect(uri)) {
            return invalid_uri("This server accepts listed clients only");
        }
        let name = metadata.client_name.unwrap_or_default();
        let registration = Registration {
            name: clipped(&name, LONGEST_NAME).into_owned(),
            redirect_uris: metadata.redirect_uris,
            registered_at: since_epoch(records.clock.now()).as_secs(),
        };
        let client_id = records.keys.seal_text(REGISTRATION, &registration);
        if client_id.len() > LONGEST_ID {
            return invalid_metadata("The redirect URIs are too long");
        }
        // Whatever the client has asked for: it is public.
        Ok(json!({
            "client_id": client_id,
            "client_id_issued_at": registration.registered_at,
            "client_name": registration.name,
            "redirect_uris": registration.redirect_uris,
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": "none",
        }))
    }
}

/// The clients that the owner has listed: hosts and redirect URIs. Without any, every client may
/// ask users to sign in.
#[derive(Clone, Debug, Default)]
pub(super) struct ListedClients(pub(super) Vec<String>);

impl ListedClients {
    /// Returns the entry that is neither a host nor a redirect URI, if there is one.
    pub(super) fn mistake(&self) -> Option<&str> {
        let is_host = |entry: &str| !entry.contains(['/', ':', '@', '?', '#', ' ']);
        let is_valid = |entry: &str| is_host(entry) || parse_redirect_uri(entry, true).is_some();
        let mistake = self.0.iter().find(|entry| !is_valid(entry));
        mistake.map(String::as_str)
    }

    pub(super) fn allows_host(&self, host: &str) -> bool {
        let is_listed = |entry: &String| entry.eq_ignore_ascii_case(host);
        self.0.is_empty() || self.0.iter().any(is_listed)
    }

    /// Returns true if a document at this host may describe a client: the host is listed, or a
    /// redirect URI is, which the document may name.
    pub(super) fn may_describe(&self, host: &str) -> bool {
        self.allows_host(host) || self.0.iter().any(|entry| entry.contains(':'))
    }

    /// Returns true if a client with this id may use this redirect URI: one of the two is listed, or
    /// its host is.
    pub(super) fn allows(&self, client_id: &str, redirect_uri: &str) -> bool {
        self.allows_host_of(client_id) || self.allows_redirect(redirect_uri)
    }

    /// Returns true for a URL over TLS whose host is listed.
    fn allows_host_of(&self, url: &str) -> bool {
        let url = Url::parse(url).ok().filter(|url| url.scheme() == "https");
        let host = url.as_ref().and_then(Url::host_str);
        host.is_some_and(|host| self.allows_host(host))
    }

    /// Returns true if the owner has listed a redirect URI itself.
    pub(super) fn names(&self, uri: &str) -> bool {
        self.0.iter().any(|entry| is_same_uri(entry, uri))
    }

    /// Returns true if users may be sent to this redirect URI: it is listed, or its host is.
    pub(super) fn allows_redirect(&self, uri: &str) -> bool {
        self.0.is_empty() || self.names(uri) || self.allows_host_of(uri)
    }
}

/// Parses a redirect URI to which codes may be sent: over TLS, to the user's own machine, or to the
/// app that has registered a scheme there. `is_listed` is true for the URIs that the owner has
/// listed, whose scheme may be any.
fn parse_redirect_uri(uri: &str, is_listed: bool) -> Option<Url> {
    let is_written = uri.len() <= LONGEST_URI && uri.bytes().all(|byte| byte.is_ascii_graphic());
    let url = Url::parse(uri).ok().filter(|_| is_written)?;
    let is_safe = match url.scheme() {
        "https" => true,
        "http" => is_loopback(&url),
        scheme => is_listed || scheme.contains('.') || EDITORS.contains(&scheme),
    };
    (is_bare(&url) && is_safe).then_some(url)
}

/// Returns true if a requested URI is the registered one. Of those of the user's own machine, the
/// port does not count: a client listens on a free one (RFC 8252, 7.3).
fn is_same_uri(registered: &str, requested: &str) -> bool {
    let without_port = |uri: &str| {
        let mut url = Url::parse(uri).ok().filter(is_loopback)?;
        url.set_port(None).ok()?;
        Some(url)
    };
    registered == requested
        || without_port(registered).is_some_and(|it| Some(it) == without_port(requested))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_sent_over_tls_to_this_machine_or_to_an_app() {
        let uris = "https://claude.ai/api/mcp/auth_callback https://client.example/cb?a=1 \
            http://localhost/callback http://127.0.0.1:3118/callback http://[::1]:1/ \
            cursor://anysphere.cursor-mcp/oauth/callback com.example.app:/callback";
        for uri in uris.split(' ') {
            assert!(parse_redirect_uri(uri, false).is_some(), "{uri}");
        }
        let uris = "|https://client.example/c b|https://client.example/\r\nSet-Cookie:a|\
            http://client.example/cb|http://localhost.evil.example/cb|http://localhost@evil.example/cb|\
            http://127.0.0.1.evil.example/cb|https://user@client.example/cb|https://client.example/cb#fragment|\
            javascript:alert(1)|data:text/html,x|file:///etc/passwd|myapp://callback|/callback";
        for uri in uris.split('|') {
            assert!(parse_redirect_uri(uri, false).is_none(), "{uri}");
        }
        assert!(parse_redirect_uri("myapp://callback", true).is_some());
        assert!(parse_redirect_uri("http://client.example/cb", true).is_none());
    }

    #[test]
    fn only_the_port_of_this_machine_may_differ() {
        for (registered, same, others) in [
            (
                "http://localhost/callback",
                "http://localhost:3118/callback",
                "http://localhost:3118/other http://localhost:3118/callback?a=b \
                 http://127.0.0.1:3118/callback http://u@localhost:3118/callback \
                 https://localhost:3118/callback",
            ),
            ("http://127.0.0.1:1/cb", "http://127.0.0.1:2/cb", ""),
            (
                "https://a.example/cb",
                "https://a.example/cb",
                "https://a.example:8443/cb https://a.example/cb/ https://A.example/cb",
            ),
        ] {
            assert!(is_same_uri(registered, same), "{registered}");
            for other in others.split(' ') {
                assert!(!is_same_uri(registered, other), "{registered} {other}");
            }
        }
    }

    #[test]
    fn listed_clients_are_hosts_and_redirect_uris() {
        let list = |texts: &str| ListedClients(texts.split('|').map(str::to_owned).collect());
        let listed = list("claude.ai|http://localhost/callback|myapp://cb");
        assert_eq!(listed.mistake(), None);
        let uris =
            "https://claude.ai/api/mcp/auth_callback http://localhost:3118/callback myapp://cb";
        for uri in uris.split(' ') {
            assert!(listed.allows_redirect(uri), "{uri}");
        }
        let uris = "https://claude.ai.evil.example/cb https://evil.example/claude.ai \
            http://localhost:3118/other http://127.0.0.1:3118/callback myapp://other \
            other://claude.ai/cb";
        for uri in uris.split(' ') {
            assert!(!listed.allows_redirect(uri), "{uri}");
        }
        assert!(listed.allows_host("Claude.ai") && !listed.allows_host("evil.example"));
        assert!(ListedClients::default().allows_redirect("https://any.example/cb"));
        for mistake in "https://claude.ai/#a|http://intranet/cb|a b|claude.ai/cb".split('|') {
            assert_eq!(list(mistake).mistake(), Some(mistake));
        }
    }
}
