//! The server's choice of a secret store, and of how long its values are cached.

use std::{fmt, path::PathBuf, sync::Arc, time::Duration};

use futures_util::FutureExt;

use super::{SecretStore, environment::Environment, fixed::Fixed};
use crate::Secret;

/// The maximum duration. It is longer than any process lives; a much longer one would overflow an
/// `Instant`.
const LONGEST: Duration = Duration::from_hours(365 * 24);

/// The source of the secrets that calls do not bring, and how long their values are cached.
///
/// ```
/// use std::time::Duration;
/// use lambda_tools::{Server, Toolkit, secrets::Secrets};
///
/// let secrets = Secrets::environment()
///     .cache_for(Duration::from_secs(60))
///     .only_from_store();
/// let server = Server::new(Toolkit::new([])?).secrets(secrets);
/// # Ok::<(), lambda_tools::BuildError>(())
/// ```
#[derive(Clone)]
#[must_use]
pub struct Secrets {
    pub(super) store: Option<Arc<dyn SecretStore>>,
    pub(super) cache_for: Duration,
    pub(super) stale_for: Duration,
    pub(super) timeout: Duration,
    /// The dotenv file of the store, if it has one.
    file: Option<PathBuf>,
    from_calls: bool,
}

impl Secrets {
    /// Takes secrets from your own store, from [`SecretsManager`](super::SecretsManager), or from
    /// [`ParameterStore`](super::ParameterStore).
    pub fn from_store(store: impl SecretStore + 'static) -> Self {
        Self {
            store: Some(Arc::new(store)),
            ..Self::none()
        }
    }

    /// Uses no store: calls must bring the secrets that tools need.
    pub fn none() -> Self {
        Self {
            store: None,
            cache_for: Duration::from_mins(5),
            stale_for: Duration::from_hours(1),
            timeout: Duration::from_secs(3),
            file: None,
            from_calls: true,
        }
    }

    /// Takes secrets from the environment variables whose names are the secrets' ids. The variables
    /// are read each time.
    pub fn environment() -> Self {
        Self::from_store(Environment::new(None))
    }

    /// Does the same as [`Secrets::environment`], but reads variables that are not set from a
    /// dotenv file (one `NAME=value` per line). The file may be missing. A `$` in a value that is
    /// not in single quotes refers to another variable.
    pub fn environment_and_file(file: impl Into<PathBuf>) -> Self {
        let file = Some(file.into());
        Self {
            file: file.clone(),
            ..Self::from_store(Environment::new(file))
        }
    }

    /// Takes secrets from the program itself, for tests.
    pub fn fixed<I: Into<String>, V: Into<Secret>>(
        secrets: impl IntoIterator<Item = (I, V)>,
    ) -> Self {
        let pair = |(id, value): (I, V)| (id.into(), value.into());
        Self::from_store(Fixed(secrets.into_iter().map(pair).collect()))
    }

    /// Sets how long a value is used before it is read again: 5 minutes by default. With zero, it
    /// is read for every call; even then, a missing or unreadable secret is remembered for 10
    /// seconds, and a store that failed is not read again for one second.
    pub fn cache_for(mut self, time: Duration) -> Self {
        self.cache_for = time.min(LONGEST);
        self
    }

    /// Sets how much longer the last good value is used while the store cannot be reached or
    /// throttles: one hour by default. Has no effect if values are not cached.
    pub fn stale_for(mut self, time: Duration) -> Self {
        self.stale_for = time;
        self
    }

    /// Sets how long the store may take to respond: 3 seconds by default. A call waits for at most
    /// half of the time that it has left.
    pub fn timeout(mut self, time: Duration) -> Self {
        self.timeout = time.min(LONGEST);
        self
    }

    /// Ignores the secrets that calls bring in `context.secrets`.
    pub fn only_from_store(mut self) -> Self {
        self.from_calls = false;
        self
    }

    pub(crate) fn has_store(&self) -> bool {
        self.store.is_some()
    }

    /// Returns false if a value that can be read without waiting is shorter, in bytes.
    pub(crate) fn has_length(&self, id: &str, least: usize) -> bool {
        let store = self.store.iter().filter(|store| store.is_local());
        let reads = store.filter_map(|store| store.read(&[id.to_owned()]).now_or_never());
        let mut values = reads.flatten().flatten().flatten();
        values.all(|value| value.expose().trim().len() >= least)
    }

    /// Says how to give a secret a value.
    pub(super) fn advice(&self, id: &str) -> String {
        match (&self.file, &self.store) {
            (Some(file), _) => format!("for example {id}=… in {}", file.display()),
            (None, Some(store)) => format!("it is read from {}", store.location(id)),
            (None, None) => "this server has no store of secrets".to_owned(),
        }
    }

    pub(crate) fn may_come_from_calls(&self) -> bool {
        self.from_calls
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let store = self.store.as_ref().map(|store| store.location("ID"));
        f.debug_struct("Secrets")
            .field("store", &store)
            .field("file", &self.file)
            .field("cache_for", &self.cache_for)
            .field("stale_for", &self.stale_for)
            .field("timeout", &self.timeout)
            .field("from_calls", &self.from_calls)
            .finish()
    }
}
