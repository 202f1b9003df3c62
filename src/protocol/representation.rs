//! Lists and documents as they are sent: their representations (RFC 9110, section 3.2).
//!
//! A list can have megabytes. Whatever a response needs of it (its size in an event, its text
//! there, its hash, its compressed form) is made on first use and kept, so that a later response
//! costs no look at its bytes. Lists are JSON.

use std::sync::{Arc, OnceLock};

use base64::{
    Engine as _,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use bytes::Bytes;
use http::HeaderValue;
use serde_json::value::{RawValue, to_raw_value};
use sha2::{Digest, Sha256};

use super::content_coding::Coding;
use crate::{
    gzip,
    payload::{encoded_size, encoded_size_of_binary, largest_encoded_size},
};

/// The smallest body that is worth compressing, in bytes.
pub(super) const SMALLEST_COMPRESSED: usize = 16 * 1024;

/// A body in one content coding.
pub(crate) struct Representation {
    body: Bytes,
    coding: Coding,
    size_in_event: OnceLock<usize>,
    text_in_event: OnceLock<Box<RawValue>>,
}

impl Representation {
    fn new(body: Bytes, coding: Coding) -> Arc<Self> {
        Arc::new(Self {
            body,
            coding,
            size_in_event: OnceLock::new(),
            text_in_event: OnceLock::new(),
        })
    }

    pub(super) fn body(&self) -> Bytes {
        self.body.clone()
    }

    pub(crate) fn coding(&self) -> Coding {
        self.coding
    }

    /// True for the very bytes of this representation, not only for equal ones.
    pub(crate) fn is(&self, body: &Bytes) -> bool {
        (self.body.as_ptr(), self.body.len()) == (body.as_ptr(), body.len())
    }

    /// True if an event's response with this body has at most `largest` bytes.
    pub(crate) fn fits(&self, largest: usize) -> bool {
        let fits_escaped = largest_encoded_size(&self.body) <= largest;
        (self.coding == Coding::Identity && fits_escaped) || self.size_in_event() <= largest
    }

    /// The size of an event's response with this body, in bytes.
    fn size_in_event(&self) -> usize {
        *self.size_in_event.get_or_init(|| match self.coding {
            Coding::Identity => encoded_size(&self.body),
            Coding::Gzip => encoded_size_of_binary(&self.body),
        })
    }

    /// The JSON string that has this body in an event's response.
    pub(crate) fn text_in_event(&self) -> &RawValue {
        self.text_in_event.get_or_init(|| {
            let text = match self.coding {
                Coding::Identity => {
                    to_raw_value(str::from_utf8(&self.body).expect("JSON is UTF-8"))
                }
                Coding::Gzip => to_raw_value(&STANDARD.encode(&self.body)),
            };
            text.expect("a string can be serialized as JSON")
        })
    }
}

/// A list or a document in all of its content codings.
pub(super) struct Representations {
    plain: Arc<Representation>,
    /// `None` if the compressed form would not be smaller in an event.
    gzip: OnceLock<Option<Arc<Representation>>>,
    hash: OnceLock<String>,
}

impl Representations {
    pub(super) fn new(body: impl Into<Bytes>) -> Arc<Self> {
        Arc::new(Self {
            plain: Representation::new(body.into(), Coding::Identity),
            gzip: OnceLock::new(),
            hash: OnceLock::new(),
        })
    }

    pub(super) fn get(&self, coding: Coding) -> Option<&Arc<Representation>> {
        match coding {
            Coding::Identity => Some(&self.plain),
            Coding::Gzip => self.gzip.get_or_init(|| self.compressed()).as_ref(),
        }
    }

    fn compressed(&self) -> Option<Arc<Representation>> {
        let plain = &self.plain;
        if plain.body.len() < SMALLEST_COMPRESSED {
            return None;
        }
        let compressed = gzip::compressed(&plain.body);
        let compressed = Representation::new(compressed.into(), Coding::Gzip);
        (compressed.size_in_event() < plain.size_in_event()).then_some(compressed)
    }

    /// The entity tag of a representation. It is strong, so each coding has its own (RFC 9110,
    /// section 8.8.3.3).
    pub(super) fn tag(&self, coding: Coding) -> HeaderValue {
        let hash = self.hash.get_or_init(|| {
            let hash = Sha256::digest(&self.plain.body);
            URL_SAFE_NO_PAD.encode(&hash[..18])
        });
        let tag = match coding {
            Coding::Identity => format!("\"{hash}\""),
            Coding::Gzip => format!("\"{hash}-gzip\""),
        };
        HeaderValue::try_from(tag).expect("base64 is ASCII")
    }
}
