//! Clients: who asks a user to sign in.
//!
//! Nothing about a client is stored. Its id is either the URL of its metadata document (OAuth
//! Client ID Metadata Document), or its whole registration (RFC 7591), sealed.

use std::time::SystemTime;

use reqwest::Url;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    documents::{ClientMetadata, Documents, is_document_url},
    error::OAuthError,
    redirect_uri,
    rules::ListedClients,
};
use crate::{clock::since_epoch, oauth::EncryptionKeys, store::hash_of_texts, text::clipped};

/// The purpose for which registrations are sealed.
const REGISTRATION: &str = "client registration";
/// The maximum length of a client's name, in bytes; a longer one is clipped.
const LONGEST_NAME: usize = 100;
const MOST_REDIRECT_URIS: usize = 10;
/// The maximum length of a client's id, in bytes: it is a parameter of URLs.
const LONGEST_ID: usize = 4096;

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

/// The reason why a client is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClientError {
    /// The id is neither the URL of a document nor one that this server has issued.
    Unknown,
    /// The document cannot be fetched, or is not the client's.
    Document(&'static str),
    /// The owner has not listed it.
    NotListed,
    /// The redirect URI is not one of the client's.
    RedirectUri,
}

impl Client {
    /// Returns the client with this id.
    pub(super) async fn find(
        id: &str,
        keys: &EncryptionKeys,
        documents: &Documents,
        listed: &ListedClients,
    ) -> Result<Self, ClientError> {
        if id.len() > LONGEST_ID {
            return Err(ClientError::Unknown);
        }
        if id.starts_with("https:") {
            return Self::at(id, documents, listed).await;
        }
        let registration = registration_in(id, keys).ok_or(ClientError::Unknown)?;
        Ok(Self {
            id: id.to_owned(),
            name: registration.name,
            host: None,
            redirect_uris: registration.redirect_uris,
        })
    }

    /// Returns the client whose document is at this URL.
    async fn at(
        id: &str,
        documents: &Documents,
        listed: &ListedClients,
    ) -> Result<Self, ClientError> {
        let url = Url::parse(id).ok().filter(|url| is_document_url(id, url));
        let url = url.ok_or(ClientError::Document("its client_id is not a valid URL"))?;
        let host = url.host_str().unwrap_or_default().to_owned();
        // A document is not even fetched if no redirect URI in it could be used.
        if !listed.may_describe(&host) {
            return Err(ClientError::NotListed);
        }
        let metadata = documents.get(&url).await.map_err(ClientError::Document)?;
        let name = metadata.client_name.as_deref().unwrap_or_default();
        Ok(Self {
            id: id.to_owned(),
            name: clipped(name, LONGEST_NAME).into_owned(),
            host: Some(host),
            redirect_uris: metadata.redirect_uris.clone(),
        })
    }

    /// Returns the redirect URI of a request, which must be one of the client's, and one that the
    /// owner's list allows. Without the parameter, it is the client's only one.
    pub(super) fn redirect_uri(
        &self,
        requested: Option<&str>,
        listed: &ListedClients,
    ) -> Result<String, ClientError> {
        let uri = match (requested, &self.redirect_uris[..]) {
            (Some(uri), all) if all.iter().any(|it| redirect_uri::is_same(it, uri)) => uri,
            (None, [only]) => only,
            _ => return Err(ClientError::RedirectUri),
        };
        // Also here: the owner's list may have changed since the registration.
        redirect_uri::parse(uri, listed.names(uri)).ok_or(ClientError::RedirectUri)?;
        if !listed.allows(&self.id, uri) {
            return Err(ClientError::NotListed);
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
    serde_json::from_slice(&keys.open_text(REGISTRATION, id)?).ok()
}

/// Registers a client, and returns the response: RFC 7591, 3.2.1.
pub(super) fn register(
    body: &[u8],
    keys: &EncryptionKeys,
    listed: &ListedClients,
    now: SystemTime,
) -> Result<Value, OAuthError> {
    let invalid_metadata = |text| OAuthError::new("invalid_client_metadata", text);
    let invalid_uri = |text| Err(OAuthError::new("invalid_redirect_uri", text));
    let metadata: ClientMetadata = serde_json::from_slice(body)
        .map_err(|_| invalid_metadata("The body must be a JSON object with redirect_uris"))?;
    let uris = &metadata.redirect_uris;
    if uris.is_empty() || uris.len() > MOST_REDIRECT_URIS {
        return invalid_uri("redirect_uris must have 1 to 10 items");
    }
    let is_valid = |uri: &String| redirect_uri::parse(uri, listed.names(uri)).is_some();
    if !uris.iter().all(is_valid) {
        return invalid_uri(
            "Every redirect URI must use https, be http on localhost, or have the scheme of an app, \
             without a fragment; the server's owner can list another one (TOOLS_SIGN_IN_CLIENTS)",
        );
    }
    if !uris.iter().any(|uri| listed.allows_redirect(uri)) {
        return invalid_uri("This server accepts listed clients only");
    }
    let name = metadata.client_name.unwrap_or_default();
    let registration = Registration {
        name: clipped(&name, LONGEST_NAME).into_owned(),
        redirect_uris: metadata.redirect_uris,
        registered_at: since_epoch(now).as_secs(),
    };
    let text = serde_json::to_vec(&registration).expect("texts and numbers");
    let client_id = keys.seal_text(REGISTRATION, &text);
    if client_id.len() > LONGEST_ID {
        return Err(invalid_metadata("The redirect URIs are too long"));
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
