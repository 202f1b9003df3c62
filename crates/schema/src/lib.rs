//! The JSON Schemas of tools: derived from types, checked, explained, and reduced to what models and
//! clients accept.
//!
//! All passes over a schema read one table of keywords, [`vocabulary`].

#![cfg_attr(docsrs, feature(doc_cfg))]
#![allow(
    clippy::must_use_candidate,
    reason = "the functions only compute a value"
)]

pub mod decode;
mod derive;
pub mod document;
pub mod example;
mod expected;
mod fast_check;
pub mod inline;
pub mod integers;
mod modern;
mod nulls;
pub mod portable;
pub mod reduced;
mod schema;
pub mod text;
#[cfg_attr(not(feature = "validation"), path = "validation/off.rs")]
mod validation;
pub mod vocabulary;
mod walk;

pub use derive::{of_input, of_output};
pub use expected::declared_properties;
pub use modern::modernize;
pub use schema::Schema;
pub use walk::{each, each_inner, forbidden_reference, is_type, undescribed_properties};

// The crates whose types are part of this crate's interface.
pub use {schemars, serde_json};

/// Compiles the code in README.md.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// A JSON object.
pub type JsonObject = serde_json::Map<String, serde_json::Value>;

/// The errors of an input: a message for each invalid parameter, by its path (`address.street`,
/// `items[2].sku`).
pub type ParameterErrors = std::collections::BTreeMap<String, String>;
