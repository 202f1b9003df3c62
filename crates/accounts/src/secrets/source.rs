//! The server's choice of a secret store, and the stores that need no setup: the environment with an
//! optional dotenv file, and the program itself.

use std::{
    collections::BTreeMap,
    env::{self, VarError},
    fmt,
    future::ready,
    path::{Path, PathBuf},
    sync::Arc,
};

use futures_util::FutureExt;

use super::{ReadFuture, ReadResult, SecretStore};
use crate::{Secret, StoreError};

/// The source of the secrets that calls do not bring.
///
/// Values from a store that is not [local](SecretStore::is_local) are read again after 5 minutes. While
/// the store cannot be reached or throttles, the last good value is used for up to an hour more. A store
/// has 3 seconds to respond.
///
/// ```
/// # use lambda_tools_accounts as lambda_tools;
/// use lambda_tools::secrets::Secrets;
///
/// // For `Server::secrets`.
/// let secrets = Secrets::environment().only_from_store();
/// ```
#[derive(Clone)]
#[must_use]
pub struct Secrets {
    pub(super) store: Option<Arc<dyn SecretStore>>,
    /// The dotenv file of the store, if it has one.
    pub(super) file: Option<PathBuf>,
    pub(super) from_calls: bool,
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
            file: None,
            from_calls: true,
        }
    }

    /// Takes secrets from the environment variables whose names are the secrets' ids. The variables
    /// are read each time.
    pub fn environment() -> Self {
        Self::from_store(Environment { file: None })
    }

    /// Does the same as [`Secrets::environment`], but reads variables that are not set from a
    /// dotenv file (one `NAME=value` per line). The file may be missing. A `$` in a value that is
    /// not in single quotes refers to another variable.
    pub fn environment_and_file(file: impl Into<PathBuf>) -> Self {
        let file = Some(file.into());
        Self {
            file: file.clone(),
            ..Self::from_store(Environment { file })
        }
    }

    /// Takes secrets from the program itself, for tests.
    pub fn fixed<I: Into<String>, V: Into<Secret>>(
        secrets: impl IntoIterator<Item = (I, V)>,
    ) -> Self {
        let pair = |(id, value): (I, V)| (id.into(), value.into());
        Self::from_store(Fixed(secrets.into_iter().map(pair).collect()))
    }

    /// Ignores the secrets that calls bring in `context.secrets`.
    pub fn only_from_store(mut self) -> Self {
        self.from_calls = false;
        self
    }

    /// Returns true if there is a store.
    pub fn has_store(&self) -> bool {
        self.store.is_some()
    }

    /// Returns false if a value that can be read without waiting is shorter, in bytes.
    pub fn has_length(&self, id: &str, least: usize) -> bool {
        let store = self.store.iter().filter(|store| store.is_local());
        let reads = store.filter_map(|store| store.read(&[id.to_owned()]).now_or_never());
        let mut values = reads.flatten().flatten().flatten();
        values.all(|value| value.expose().trim().len() >= least)
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let store = self.store.as_ref().map(|store| store.location("ID"));
        f.debug_struct("Secrets")
            .field("store", &store)
            .field("file", &self.file)
            .field("from_calls", &self.from_calls)
            .finish()
    }
}

/// Environment variables, and an optional dotenv file.
struct Environment {
    file: Option<PathBuf>,
}

impl SecretStore for Environment {
    /// Reads the environment, and the file for what is not in it. The file is read each time, so
    /// that a change to it needs no restart. An empty value counts as not set.
    fn read<'a>(&'a self, ids: &'a [String]) -> ReadFuture<'a> {
        let read_one = |id: &String| match (in_environment(id), &self.file) {
            (Ok(None), Some(file)) => in_file(file, id),
            (result, _) => result,
        };
        Box::pin(ready(ids.iter().map(read_one).collect()))
    }

    fn is_local(&self) -> bool {
        true
    }

    fn location(&self, id: &str) -> String {
        match &self.file {
            None => format!("the environment variable '{id}'"),
            Some(file) => format!("the environment variable '{id}' or {}", file.display()),
        }
    }
}

fn in_environment(id: &str) -> ReadResult {
    // An invalid name is never set, and makes some versions of the standard library panic.
    if id.is_empty() || id.contains(['=', '\0']) {
        return Ok(None);
    }
    match env::var(id) {
        Ok(value) => Ok((!value.is_empty()).then(|| value.into())),
        Err(VarError::NotPresent) => Ok(None),
        Err(VarError::NotUnicode(_)) => Err(StoreError::undecodable(format!(
            "the environment variable '{id}' is not UTF-8"
        ))),
    }
}

fn in_file(file: &Path, id: &str) -> ReadResult {
    let invalid = |text: &str| StoreError::undecodable(format!("{} {text}", file.display()));
    let lines = match dotenvy::from_path_iter(file) {
        Ok(lines) => lines,
        Err(error) if error.not_found() => return Ok(None),
        Err(_) => return Err(invalid("cannot be opened")),
    };
    let mut secret = None;
    for line in lines {
        // The parser's own errors quote the line, which contains a secret.
        let (name, value) = line.map_err(|_| invalid("has a line that is not NAME=value"))?;
        if name == id && !value.is_empty() {
            secret = Some(Secret::from(value));
        }
    }
    Ok(secret)
}

/// The program itself, for tests.
struct Fixed(BTreeMap<String, Secret>);

impl SecretStore for Fixed {
    fn read<'a>(&'a self, ids: &'a [String]) -> ReadFuture<'a> {
        let read_one = |id: &String| Ok(self.0.get(id).cloned());
        Box::pin(ready(ids.iter().map(read_one).collect()))
    }

    fn is_local(&self) -> bool {
        true
    }

    fn location(&self, _: &str) -> String {
        "the server's fixed secrets".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, id: &str) -> ReadResult {
        let name = format!("dotenv-{}-{:p}", std::process::id(), text);
        let file = env::temp_dir().join(name);
        std::fs::write(&file, text).unwrap();
        let result = in_file(&file, id);
        std::fs::remove_file(&file).unwrap();
        result
    }

    fn value(text: &str, id: &str) -> Option<String> {
        let secret = read(text, id).unwrap();
        secret.map(|secret| secret.expose().to_owned())
    }

    #[test]
    fn a_dotenv_file_is_read() {
        let text = "# keys\nexport A=one\nB='two $A'\n\nC=\nA_KEY=\"three\\nlines\"\n";
        assert_eq!(value(text, "A").as_deref(), Some("one"));
        assert_eq!(value(text, "B").as_deref(), Some("two $A"));
        assert_eq!(value(text, "C"), None, "an empty value is not set");
        assert_eq!(value(text, "D"), None);
        assert_eq!(value(text, "A_KEY").as_deref(), Some("three\nlines"));
    }

    #[test]
    fn an_invalid_file_is_not_quoted() {
        let error = read("A=one\nmarked\n", "Z").unwrap_err().to_string();
        assert!(error.contains("is not NAME=value"), "{error}");
        assert!(!error.contains("marked"), "{error}");
    }

    #[test]
    fn a_missing_file_or_an_invalid_name_is_no_secret() {
        let missing = in_file(Path::new("/nowhere/.env"), "A");
        assert!(missing.unwrap().is_none());
        for id in ["", "=", "A=B", "A\0B"] {
            assert!(in_environment(id).unwrap().is_none());
        }
    }
}
