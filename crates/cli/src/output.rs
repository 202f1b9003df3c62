//! The files and messages that the command writes.

use std::{
    fs,
    io::{self, Write},
    path::Path,
};

use crate::Error;

/// Writes a file as a whole or not at all, so that builds find a whole file even after a stop.
pub(crate) fn write(path: &Path, text: &str) -> Result<(), Error> {
    let path = &fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let written = match fs::metadata(path) {
        // A pipe or a terminal cannot be replaced.
        Ok(metadata) if !metadata.is_file() => fs::write(path, text),
        _ => replace(path, text),
    };
    written.map_err(|error| format!("{} cannot be written: {error}", path.display()).into())
}

fn replace(path: &Path, text: &str) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.tmp", std::process::id()));
    let beside = path.with_file_name(name);
    let written = fs::write(&beside, text).and_then(|()| fs::rename(&beside, path));
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

/// Returns a line without what a terminal would obey: control characters, and marks that break lines
/// or turn the direction of text. Documents come from others.
pub(crate) fn shown(line: &str) -> String {
    let is_mark = |it| matches!(it, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    line.replace(|it: char| it.is_control() || is_mark(it), "\u{fffd}")
}
