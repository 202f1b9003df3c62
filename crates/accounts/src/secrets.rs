//! Secrets: values that tools may use and nothing may reveal, and the stores that hold them.

#[cfg(any(feature = "parameter-store", feature = "secrets-manager"))]
mod batch;
mod cache;
#[cfg(feature = "secrets-manager")]
mod manager;
#[cfg(feature = "parameter-store")]
mod parameter_store;
mod source;

use std::{future::Future, pin::Pin};

use crate::StoreError;

pub use crate::secret::Secret;
use crate::secret::stored;
pub use cache::{CacheUse, SecretCache};
#[cfg(feature = "secrets-manager")]
pub use manager::SecretsManager;
#[cfg(feature = "parameter-store")]
pub use parameter_store::ParameterStore;
pub use source::Secrets;

/// A store of secrets.
///
/// ```
/// # use lambda_tools_accounts as lambda_tools;
/// use lambda_tools::secrets::{ReadFuture, Secret, SecretStore};
///
/// /// Holds one secret.
/// struct Vault;
///
/// impl SecretStore for Vault {
///     fn read<'a>(&'a self, ids: &'a [String]) -> ReadFuture<'a> {
///         let read_one = |id: &String| Ok((id == "KEY").then(|| Secret::from("value")));
///         Box::pin(async move { ids.iter().map(read_one).collect() })
///     }
///
///     fn location(&self, id: &str) -> String {
///         format!("the vault, under '{id}'")
///     }
/// }
/// ```
pub trait SecretStore: Send + Sync {
    /// Reads secrets: one result for each id, in the same order. There are at most
    /// [`batch_size`](Self::batch_size) ids, without duplicates.
    fn read<'a>(&'a self, ids: &'a [String]) -> ReadFuture<'a>;

    /// Returns the place where the store looks for a secret, for messages: `the environment
    /// variable 'ID'`.
    fn location(&self, id: &str) -> String;

    /// Returns `true` if reading costs nothing, as with environment variables. Values are then not
    /// cached.
    fn is_local(&self) -> bool {
        false
    }

    /// Returns the maximum number of ids in one request. When a secret is read, all other secrets
    /// that the server declares are read with it, unless they were read recently, in as many
    /// concurrent requests as necessary.
    fn batch_size(&self) -> usize {
        1
    }
}

/// The future that [`SecretStore::read`] returns.
pub type ReadFuture<'a> = Pin<Box<dyn Future<Output = Vec<ReadResult>> + Send + 'a>>;

/// The result for one secret: its value, `None` if there is none, or the reason why it could not be
/// read.
pub type ReadResult = Result<Option<Secret>, StoreError>;
