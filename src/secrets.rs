//! Secrets: values that tools may use and nothing may reveal, and the stores that hold them.
//!
#![doc = include_str!("pages.md")]
#![doc = include_str!("../docs/secrets.md")]

#[cfg(any(feature = "parameter-store", feature = "secrets-manager"))]
mod batch;
mod cache;
mod environment;
mod fixed;
#[cfg(feature = "secrets-manager")]
mod manager;
#[cfg(feature = "parameter-store")]
mod parameter_store;
mod source;
mod store;

pub use crate::secret::Secret;
pub(crate) use crate::secret::{redaction, stored};
pub(crate) use cache::{CacheUse, SecretCache};
#[cfg(feature = "secrets-manager")]
pub use manager::SecretsManager;
#[cfg(feature = "parameter-store")]
pub use parameter_store::ParameterStore;
pub use source::Secrets;
pub use store::{ReadFuture, ReadResult, SecretStore};
