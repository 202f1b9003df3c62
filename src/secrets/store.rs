//! The interface of a secret store, and what it can say besides a value.

use std::{fmt, future::Future, pin::Pin};

use crate::Secret;

/// Where secrets are kept.
///
/// ```
/// use lambda_tools::{Secret, secrets::{Reading, SecretStore}};
///
/// /// Knows one secret.
/// struct Vault;
///
/// impl SecretStore for Vault {
///     fn read<'a>(&'a self, ids: &'a [String]) -> Reading<'a> {
///         let one = |id: &String| Ok((id == "KEY").then(|| Secret::from("value")));
///         Box::pin(async move { ids.iter().map(one).collect() })
///     }
///
///     fn place(&self, id: &str) -> String {
///         format!("the vault, under '{id}'")
///     }
/// }
/// ```
pub trait SecretStore: Send + Sync {
    /// Reads secrets: one result for each id, in their order. At most
    /// [`batch_size`](Self::batch_size) ids at once, none of them twice.
    fn read<'a>(&'a self, ids: &'a [String]) -> Reading<'a>;

    /// Where a secret is looked for, for messages: `the environment variable 'ID'`.
    fn place(&self, id: &str) -> String;

    /// How many ids one request carries. What room a request has left is filled with other secrets
    /// that the tools declare, so that they need none of their own.
    fn batch_size(&self) -> usize {
        1
    }
}

/// What [`SecretStore::read`] returns.
pub type Reading<'a> = Pin<Box<dyn Future<Output = Vec<Read>> + Send + 'a>>;

/// One secret as a store has it: its value, `None` where there is none, or why that is unknown.
pub type Read = Result<Option<Secret>, StoreError>;

/// Why a store cannot tell a secret's value. Its text names what to do about it, and no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreError {
    kind: Kind,
    detail: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Denied,
    Throttled,
    Unavailable,
    Undecodable,
}

impl StoreError {
    /// The server may not read it. `detail` names the permission that is missing.
    pub fn denied(detail: impl Into<String>) -> Self {
        Self::new(Kind::Denied, detail)
    }

    /// The store is asked too often.
    pub fn throttled(detail: impl Into<String>) -> Self {
        Self::new(Kind::Throttled, detail)
    }

    /// The store cannot be reached or does not answer as it should.
    pub fn unavailable(detail: impl Into<String>) -> Self {
        Self::new(Kind::Unavailable, detail)
    }

    /// The value is there and cannot be read.
    pub fn undecodable(detail: impl Into<String>) -> Self {
        Self::new(Kind::Undecodable, detail)
    }

    fn new(kind: Kind, detail: impl Into<String>) -> Self {
        let detail = detail.into();
        Self { kind, detail }
    }

    /// Whether the same may go well in a moment.
    #[must_use]
    pub fn is_temporary(&self) -> bool {
        matches!(self.kind, Kind::Throttled | Kind::Unavailable)
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.kind {
            Kind::Denied => "access denied",
            Kind::Throttled => "throttled",
            Kind::Unavailable => "the store is not available",
            Kind::Undecodable => "not decodable",
        };
        write!(f, "{what}: {}", self.detail)
    }
}

impl std::error::Error for StoreError {}
