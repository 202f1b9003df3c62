//! The interface of a secret store.

use std::{future::Future, pin::Pin};

use crate::{Secret, StoreError};

/// Where secrets are kept.
///
/// ```
/// use lambda_tools::{Secret, secrets::{ReadFuture, SecretStore}};
///
/// /// Knows one secret.
/// struct Vault;
///
/// impl SecretStore for Vault {
///     fn read<'a>(&'a self, ids: &'a [String]) -> ReadFuture<'a> {
///         let one = |id: &String| Ok((id == "KEY").then(|| Secret::from("value")));
///         Box::pin(async move { ids.iter().map(one).collect() })
///     }
///
///     fn location(&self, id: &str) -> String {
///         format!("the vault, under '{id}'")
///     }
/// }
/// ```
pub trait SecretStore: Send + Sync {
    /// Reads secrets: one result for each id, in their order. At most
    /// [`batch_size`](Self::batch_size) ids at once, none of them twice.
    fn read<'a>(&'a self, ids: &'a [String]) -> ReadFuture<'a>;

    /// Where a secret is looked for, for messages: `the environment variable 'ID'`.
    fn location(&self, id: &str) -> String;

    /// Whether reading costs nothing, as from the environment. Values are then not cached.
    fn is_local(&self) -> bool {
        false
    }

    /// How many ids one request carries. All secrets that the server's tools and callers need are
    /// read together when one of them is, in as many requests at once as that takes; those that
    /// were read lately are left out.
    fn batch_size(&self) -> usize {
        1
    }
}

/// What [`SecretStore::read`] returns.
pub type ReadFuture<'a> = Pin<Box<dyn Future<Output = Vec<ReadResult>> + Send + 'a>>;

/// One secret as a store has it: its value, `None` where there is none, or why that is unknown.
pub type ReadResult = Result<Option<Secret>, StoreError>;
