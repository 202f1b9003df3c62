//! Lists and documents: encoded once, and sent only to clients that do not have them.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use axum::response::Response;
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, Method, StatusCode,
    header::{CACHE_CONTROL, ETAG, IF_NONE_MATCH},
    request::Parts,
};
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::{
    json_response::{json_response, to_json},
    listed_tools::ListedTools,
};
use crate::arrival::fits;

/// RFC 9111: a list may depend on its reader, so no shared cache may store it (section 5.2.2.7), and
/// it changes with a deployment, so a private one must ask whether it is still current (5.2.2.4).
const CACHING: HeaderValue = HeaderValue::from_static("private, no-cache");

/// The JSON of a list or a document.
pub(super) struct EncodedList {
    body: Bytes,
    tag: OnceLock<HeaderValue>,
}

impl EncodedList {
    pub(super) fn new(body: impl Into<Bytes>) -> Arc<Self> {
        Arc::new(Self {
            body: body.into(),
            tag: OnceLock::new(),
        })
    }

    pub(super) fn of(list: &impl Serialize) -> Arc<Self> {
        Self::new(to_json(list))
    }

    #[cfg(all(test, feature = "openapi"))]
    pub(super) fn body(&self) -> &[u8] {
        &self.body
    }

    /// Returns true if a response with this list has at most `largest` bytes in an event.
    pub(super) fn fits(&self, largest: usize) -> bool {
        fits(&self.body, largest)
    }

    /// Returns the response; `None` if it would have more than `largest` bytes.
    pub(super) fn response(&self, request: &Parts, largest: usize) -> Option<Response> {
        let is_get = [Method::GET, Method::HEAD].contains(&request.method);
        let mut response = if is_get && self.is_known_to(&request.headers) {
            json_response(StatusCode::NOT_MODIFIED, Bytes::new())
        } else if self.fits(largest) {
            json_response(StatusCode::OK, self.body.clone())
        } else {
            return None;
        };
        if is_get {
            let headers = response.headers_mut();
            headers.insert(ETAG, self.tag().clone());
            headers.insert(CACHE_CONTROL, CACHING);
        }
        Some(response)
    }

    /// Returns the entity tag, which is strong: it changes with every byte.
    fn tag(&self) -> &HeaderValue {
        self.tag.get_or_init(|| {
            let hash = URL_SAFE_NO_PAD.encode(&Sha256::digest(&self.body)[..18]);
            HeaderValue::try_from(format!("\"{hash}\"")).expect("base64 is ASCII")
        })
    }

    /// Returns true if the client has this list (RFC 9110, section 13.1.2). The comparison is weak,
    /// so `W/` has no meaning (section 8.8.3.2). Our tag has no comma, so no other tag can be taken
    /// for it.
    fn is_known_to(&self, headers: &HeaderMap) -> bool {
        let conditions = headers.get_all(IF_NONE_MATCH).iter();
        let mut conditions = conditions.filter_map(|it| it.to_str().ok().map(str::trim));
        let is_ours = |tag: &str| {
            let tag = tag.trim();
            tag.strip_prefix("W/").unwrap_or(tag).as_bytes() == self.tag().as_bytes()
        };
        conditions.any(|it| it == "*" || it.split(',').any(is_ours))
    }
}

/// Lists that were encoded, by what they depend on besides the tools: a list that is requested
/// again costs one pointer copy.
#[derive(Default)]
pub(super) struct KeptLists<K>(Mutex<HashMap<K, Arc<EncodedList>>>);

/// The maximum number of kept lists: the URL in a document comes from requests.
const MAX_LISTS: usize = 16;

impl<K: Eq + Hash> KeptLists<K> {
    /// Returns the list with this key. A list of only some of the tools is not kept.
    pub(super) fn get(
        &self,
        key: K,
        tools: &ListedTools<'_>,
        encode: impl FnOnce() -> Arc<EncodedList>,
    ) -> Arc<EncodedList> {
        if !tools.is_complete() {
            return encode();
        }
        let mut lists = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lists.len() >= MAX_LISTS && !lists.contains_key(&key) {
            lists.clear();
        }
        Arc::clone(lists.entry(key).or_insert_with(encode))
    }
}
