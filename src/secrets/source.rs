//! The owner's choice: which store, and how its values are kept.

use std::{fmt, path::PathBuf, sync::Arc, time::Duration};

use super::{SecretStore, environment::Environment, fixed::Fixed};
use crate::Secret;

/// Longer than any process lives; much more would not be a point in time.
const LONGEST: Duration = Duration::from_hours(365 * 24);

/// Where the secrets come from that calls do not bring, and how long they are kept.
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
pub struct Secrets {
    pub(super) store: Option<Arc<dyn SecretStore>>,
    pub(super) cache_for: Duration,
    pub(super) stale_for: Duration,
    pub(super) timeout: Duration,
    from_calls: bool,
}

impl Secrets {
    /// From a store of one's own, or from [`SecretsManager`](super::SecretsManager).
    #[must_use]
    pub fn from_store(store: impl SecretStore + 'static) -> Self {
        Self {
            store: Some(Arc::new(store)),
            ..Self::none()
        }
    }

    /// From nowhere: calls have to bring what tools need.
    #[must_use]
    pub fn none() -> Self {
        Self {
            store: None,
            cache_for: Duration::from_mins(5),
            stale_for: Duration::from_hours(1),
            timeout: Duration::from_secs(3),
            from_calls: true,
        }
    }

    /// From environment variables named like the secrets. They are read each time.
    #[must_use]
    pub fn environment() -> Self {
        Self::from_store(Environment::new(None))
    }

    /// As [`Secrets::environment`], and what is not set there from a file in dotenv's format
    /// (`NAME=value`, a line each). The file may be missing. A `$` in a value that is not in single
    /// quotes stands for another variable there.
    #[must_use]
    pub fn environment_and_file(file: impl Into<PathBuf>) -> Self {
        Self::from_store(Environment::new(Some(file.into())))
    }

    /// From the program itself, for tests.
    #[must_use]
    pub fn fixed<I: Into<String>, V: Into<Secret>>(
        secrets: impl IntoIterator<Item = (I, V)>,
    ) -> Self {
        let pair = |(id, value): (I, V)| (id.into(), value.into());
        Self::from_store(Fixed(secrets.into_iter().map(pair).collect()))
    }

    /// Sets how long a value is used before it is read again: 5 minutes, unless this says
    /// otherwise. Zero reads it for every call; that there is none, or none that may be read, is
    /// remembered for 10 seconds all the same, and a store that failed is left alone for one.
    #[must_use]
    pub fn cache_for(mut self, time: Duration) -> Self {
        self.cache_for = time.min(LONGEST);
        self
    }

    /// Sets how much longer the last good value is used while the store cannot be reached or
    /// throttles: an hour, unless this says otherwise. Nothing is where nothing is cached.
    #[must_use]
    pub fn stale_for(mut self, time: Duration) -> Self {
        self.stale_for = time;
        self
    }

    /// Sets how long the store may take to answer: 3 seconds, unless this says otherwise. A call
    /// waits at most half of the time that it has left.
    #[must_use]
    pub fn timeout(mut self, time: Duration) -> Self {
        self.timeout = time.min(LONGEST);
        self
    }

    /// Ignores the secrets that calls bring in `context.secrets`.
    #[must_use]
    pub fn only_from_store(mut self) -> Self {
        self.from_calls = false;
        self
    }

    pub(crate) fn may_come_from_calls(&self) -> bool {
        self.from_calls
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secrets")
            .field("has_store", &self.store.is_some())
            .field("cache_for", &self.cache_for)
            .field("stale_for", &self.stale_for)
            .field("timeout", &self.timeout)
            .field("from_calls", &self.from_calls)
            .finish()
    }
}
