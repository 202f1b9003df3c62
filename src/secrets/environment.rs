//! Environment variables, and a file in dotenv's format beside them: the store that needs nothing.

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
    /// What is set in the environment stands; the file fills in the rest. It is read each time, so
    /// that a change to it needs no restart. Empty is what is left when a value was not set.
    fn read<'a>(&'a self, ids: &'a [String]) -> ReadFuture<'a> {
        let one = |id: &String| match in_environment(id) {
            Ok(None) => self
                .file
                .as_deref()
                .map_or(Ok(None), |file| in_file(file, id)),
            read => read,
        };
        Box::pin(std::future::ready(ids.iter().map(one).collect()))
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
    // What cannot be a name is none, and would be a panic in some versions of the library.
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
    // The parser's own errors quote the line, and what stands in it is secret.
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
    let mut found = None;
    for line in lines {
        let (name, value) = line.map_err(|_| unreadable())?;
        if name == id && !value.is_empty() {
            found = Some(Secret::from(value));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, id: &str) -> ReadResult {
        let name = format!("dotenv-{}-{:p}", std::process::id(), text);
        let file = env::temp_dir().join(name);
        std::fs::write(&file, text).unwrap();
        let read = in_file(&file, id);
        std::fs::remove_file(&file).unwrap();
        read
    }

    fn value(text: &str, id: &str) -> Option<String> {
        let secret = read(text, id).unwrap();
        secret.map(|secret| secret.expose().to_owned())
    }

    #[test]
    fn a_file_in_dotenvs_format_is_read() {
        let text = "# keys\nexport A=one\nB='two $A'\n\nC=\nA_KEY=\"three\\nlines\"\n";
        assert_eq!(value(text, "A").as_deref(), Some("one"));
        assert_eq!(value(text, "B").as_deref(), Some("two $A"));
        assert_eq!(value(text, "C"), None, "empty is not set");
        assert_eq!(value(text, "D"), None);
        assert_eq!(value(text, "A_KEY").as_deref(), Some("three\nlines"));
    }

    #[test]
    fn a_file_that_is_none_is_not_quoted() {
        let error = read("A=one\nmarked\n", "Z").unwrap_err().to_string();
        assert!(error.contains("is not NAME=value"), "{error}");
        assert!(!error.contains("marked"), "{error}");
    }

    #[test]
    fn no_file_and_no_name_are_no_secret() {
        assert_eq!(
            in_file(Path::new("/nowhere/.env"), "A").map(|it| it.is_none()),
            Ok(true)
        );
        for id in ["", "=", "A=B", "A\0B"] {
            assert!(in_environment(id).unwrap().is_none());
        }
    }
}
