//! Environment variables and an optional dotenv file: the store that needs no setup.

use std::{
    env::{self, VarError},
    path::{Path, PathBuf},
};

use super::{ReadFuture, ReadResult, SecretStore};
use crate::{Secret, StoreError};

pub(super) struct Environment {
    file: Option<PathBuf>,
}

impl Environment {
    pub(super) fn new(file: Option<PathBuf>) -> Self {
        Self { file }
    }
}

impl SecretStore for Environment {
    /// Reads the environment, and the file for what is not in it. The file is read each time, so
    /// that a change to it needs no restart. An empty value counts as not set.
    fn read<'a>(&'a self, ids: &'a [String]) -> ReadFuture<'a> {
        let read_one = |id: &String| match in_environment(id) {
            Ok(None) => self
                .file
                .as_deref()
                .map_or(Ok(None), |file| in_file(file, id)),
            result => result,
        };
        Box::pin(std::future::ready(ids.iter().map(read_one).collect()))
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
        Ok(value) => Ok(Some(value)
            .filter(|value| !value.is_empty())
            .map(Secret::from)),
        Err(VarError::NotPresent) => Ok(None),
        Err(VarError::NotUnicode(_)) => Err(StoreError::undecodable(format!(
            "the environment variable '{id}' is not UTF-8"
        ))),
    }
}

fn in_file(file: &Path, id: &str) -> ReadResult {
    // The parser's own errors quote the line, which contains a secret.
    let unreadable = || {
        let name = file.display();
        StoreError::undecodable(format!("{name} has a line that is not NAME=value"))
    };
    let lines = match dotenvy::from_path_iter(file) {
        Ok(lines) => lines,
        Err(error) if error.not_found() => return Ok(None),
        Err(_) => {
            let name = file.display();
            return Err(StoreError::undecodable(format!("{name} cannot be opened")));
        }
    };
    let mut secret = None;
    for line in lines {
        let (name, value) = line.map_err(|_| unreadable())?;
        if name == id && !value.is_empty() {
            secret = Some(Secret::from(value));
        }
    }
    Ok(secret)
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
        assert_eq!(
            in_file(Path::new("/nowhere/.env"), "A").map(|it| it.is_none()),
            Ok(true)
        );
        for id in ["", "=", "A=B", "A\0B"] {
            assert!(in_environment(id).unwrap().is_none());
        }
    }
}
