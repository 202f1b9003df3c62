//! Secrets: values that tools may use and nothing may reveal, and the stores that hold them.
//!
#![doc = include_str!("pages.md")]
#![doc = include_str!("../docs/secrets.md")]

mod cache;
mod environment;
mod fixed;
#[cfg(feature = "secrets-manager")]
mod manager;
mod source;
mod store;

pub use crate::secret::Secret;
pub(crate) use crate::secret::{redaction, stored};
pub(crate) use cache::{CacheUse, SecretCache};
#[cfg(feature = "secrets-manager")]
pub use manager::SecretsManager;
pub use source::Secrets;
pub use store::{ReadFuture, ReadResult, SecretStore};
