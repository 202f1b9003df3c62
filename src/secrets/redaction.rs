//! Redacts secrets in text that leaves the server.
//!
//! A tool's errors contain third-party text: an HTTP client quotes the URL with the key in it, an
//! API repeats the token that it rejects. A call's secrets do not leave the server in such text,
//! whatever their encoding. Failures, logs, panics, spans and recordings all use this module.

mod forms;
mod index;
mod redactor;
mod spelled;

use std::{fmt, ops::Range, sync::Arc};

use index::Index;
use redactor::Form;
pub(crate) use redactor::Redactor;
use spelled::{HEAD, TextReadings, head_of};

/// The minimum length of a secret that is redacted. Shorter ones are too weak to matter and occur
/// in ordinary words by chance, so redacting them would make responses unreadable.
pub(crate) const SHORTEST: usize = 8;

/// The same for recordings: in a repository, more is at stake and readability matters less.
pub(crate) const SHORTEST_TO_RECORD: usize = HEAD;

pub(crate) const PLACEHOLDER: &str = "[secret]";

/// Replaces any number of secrets in a text, in one pass over it.
pub(crate) struct Redaction {
    forms: Index,
    /// A bitmap of the hashes of all prefixes of forms, up to the length [`HEAD`]: most positions
    /// in a text match none.
    prefixes: Vec<u64>,
}

impl fmt::Debug for Redaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Redaction")
    }
}

impl Default for Redaction {
    fn default() -> Self {
        Self::with_room(64)
    }
}

impl Redaction {
    /// Creates a redaction for more secrets than those of one call. `words` must be a power of two,
    /// so that finding a word takes no division.
    pub(crate) fn with_room(words: usize) -> Self {
        Self {
            forms: Index::default(),
            prefixes: vec![0; words],
        }
    }

    pub(crate) fn add(&mut self, redactor: &Arc<Redactor>) {
        for form in redactor.forms() {
            mark(&mut self.prefixes, form);
        }
        self.forms.add(redactor);
    }

    pub(crate) fn remove(&mut self, redactor: &Arc<Redactor>) {
        self.forms.remove(redactor);
    }

    /// Drops the prefixes of removed forms, which are harmless but slow down the search.
    pub(crate) fn tidy(&mut self) {
        self.prefixes.fill(0);
        for form in self.forms.forms() {
            mark(&mut self.prefixes, form);
        }
    }

    /// The text without the secrets. `None` if it contains none.
    pub(crate) fn redacted(&self, text: &str) -> Option<String> {
        if self.forms.is_empty() || text.len() < HEAD {
            return None;
        }
        let matches = self.matches(text);
        (!matches.is_empty()).then(|| replace(text, matches))
    }

    /// The ranges of the secrets in a text, with their placeholders.
    fn matches(&self, text: &str) -> Vec<(Range<usize>, &str)> {
        let Some(spelled) = TextReadings::new(text) else {
            // No text may take all memory, and none may reveal a secret by being complex.
            return vec![(0..text.len(), PLACEHOLDER)];
        };
        let mut matches = Vec::new();
        let is_prefix = |prefix, len| {
            let (word, bit) = position_of(prefix, len, &self.prefixes);
            self.prefixes[word] & bit != 0
        };
        let too_complex = spelled.each_head(is_prefix, |start, head| {
            for (form, placeholder) in self.forms.get(head) {
                if let Some(end) = spelled.end_of(form.text, start) {
                    let range = with_edges(form, start..end, text, &spelled);
                    matches.push((range, placeholder));
                }
            }
        });
        matches.extend(too_complex.map(|start| (start..text.len(), PLACEHOLDER)));
        matches
    }
}

fn mark(prefixes: &mut [u64], form: Form<'_>) {
    for len in 1..=HEAD {
        let (word, bit) = position_of(head_of(&form.text[..len]), len, prefixes);
        prefixes[word] |= bit;
    }
}

/// The word and the bit of a prefix.
fn position_of(prefix: u64, len: usize, prefixes: &[u64]) -> (usize, u64) {
    let hash = (prefix << 3 | len as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let word = usize::try_from(hash >> 40).expect("24 bits fit in a usize");
    (word & (prefixes.len() - 1), 1 << (hash >> 34 & 63))
}

/// Extends a match by its padding, and by the adjacent characters that hold a few of its bits.
fn with_edges(
    form: Form<'_>,
    Range { mut start, mut end }: Range<usize>,
    text: &str,
    spelled: &TextReadings<'_>,
) -> Range<usize> {
    let is_base64 = |byte: u8| byte.is_ascii_alphanumeric() || b"+/-_".contains(&byte);
    if form.takes_before {
        start -= match text.as_bytes()[..start] {
            [.., b'%', high, low] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => 3,
            [.., before] if is_base64(before) => 1,
            _ => 0,
        };
    }
    if form.takes_after {
        end = spelled.end_of_byte(end, is_base64).unwrap_or(end);
        for _ in 0..2 {
            end = spelled.end_of_byte(end, |byte| byte == b'=').unwrap_or(end);
        }
    }
    text.floor_char_boundary(start)..text.ceil_char_boundary(end)
}

/// Replaces overlapping matches as one, with the placeholder of the longest: redacting a secret
/// inside another must not leave the rest of the outer one in the text.
fn replace(text: &str, mut matches: Vec<(Range<usize>, &str)>) -> String {
    matches.sort_by_key(|(range, _)| (range.start, std::cmp::Reverse(range.end)));
    let mut redacted = String::with_capacity(text.len());
    let mut copied = 0;
    let mut rest = matches.into_iter().peekable();
    while let Some((Range { start, mut end }, mut placeholder)) = rest.next() {
        let mut longest = end - start;
        while let Some((other, its_placeholder)) = rest.next_if(|(other, _)| other.start < end) {
            end = end.max(other.end);
            if other.len() > longest {
                (longest, placeholder) = (other.len(), its_placeholder);
            }
        }
        redacted.push_str(&text[copied..start]);
        redacted.push_str(placeholder);
        copied = end;
    }
    redacted.push_str(&text[copied..]);
    redacted
}

#[cfg(test)]
pub(super) mod tests;
