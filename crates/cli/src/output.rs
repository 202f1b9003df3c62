//! The files and messages that the command writes.

use std::{
    env, fs,
    io::{self, Write},
    path::Path,
};

use crate::Error;

/// Writes a file as a whole or not at all, so that builds find a whole file even after a stop.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let path = &fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let written = match fs::metadata(path) {
        // A pipe or a terminal cannot be replaced.
        Ok(metadata) if !metadata.is_file() => fs::write(path, bytes),
        _ => replace(path, bytes),
    };
    written.map_err(|error| format!("{} cannot be written: {error}", path.display()).into())
}

fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.tmp", std::process::id()));
    let beside = path.with_file_name(name);
    let written = fs::write(&beside, bytes).and_then(|()| fs::rename(&beside, path));
    if written.is_err() {
        // An error here would say less: the file may not exist.
        _ = fs::remove_file(&beside);
    }
    written
}

/// Prints a line to stderr, unless nobody reads it.
pub(crate) fn say(line: &str) {
    _ = writeln!(io::stderr(), "{}", shown(line));
}

/// Prints a line to stdout, unless nobody reads it.
pub(crate) fn print(line: &str) {
    if let Err(error) = writeln!(io::stdout(), "{}", shown(line))
        && error.kind() != io::ErrorKind::BrokenPipe
    {
        say(&format!("stdout cannot be written: {error}"));
        std::process::exit(1);
    }
}

/// Returns a line without what a terminal would obey: control characters, and marks that break lines
/// or turn the direction of text. Documents come from others.
pub(crate) fn shown(line: &str) -> String {
    let is_mark = |it| matches!(it, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    line.replace(|it: char| it.is_control() || is_mark(it), "\u{fffd}")
}

/// Returns the command as it was typed, for a shell.
pub(crate) fn typed() -> String {
    let arguments = env::args().skip(1).map(|it| quoted(&it));
    format!("lambda-tools {}", arguments.collect::<Vec<_>>().join(" "))
}

/// Returns a word as a shell reads it.
pub(crate) fn quoted(word: &str) -> String {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || "-_./:".contains(it);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}
