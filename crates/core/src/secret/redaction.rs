//! Redaction of secrets in text that leaves the server.
//!
//! A tool's errors contain third-party text: an HTTP client quotes the URL with the key in it, an
//! API repeats the token that it rejects. Failures, logs, panics, spans and recordings all use this
//! module. One automaton finds all secrets in all encodings, so the time that a text takes
//! depends on its length alone.

mod encodings;

use std::{collections::BTreeMap, ops::Range, sync::Arc};

use aho_corasick::{Anchored, automaton::Automaton, nfa::contiguous::NFA};
use percent_encoding::percent_decode;

use crate::Secret;
use encodings::{ENCODINGS, values_in};

/// The minimum length of a secret that is redacted. Shorter ones are too weak to matter and occur
/// in ordinary words by chance, so redacting them would make responses unreadable.
pub(crate) const SHORTEST: usize = 8;

/// The same for recordings: in a repository, more is at stake and readability matters less.
pub const SHORTEST_TO_RECORD: usize = 6;

pub(crate) const PLACEHOLDER: &str = "[secret]";

/// The mark at the end of a text that was cut, as [`clipped`](crate::text::clipped) writes it.
const CUT: &[u8] = "…".as_bytes();

/// The number of such marks, from the end of a text, before which starts are looked for.
const MOST_CUTS: usize = 16;

/// The minimum length of the start of a secret that is redacted before a cut.
const SHORTEST_START: usize = 4;

/// The maximum size of all secrets in all encodings; a larger secret is not redacted. The automaton
/// takes 16 times as much, and up to 80 times while it is built.
pub(super) const MOST_BYTES: usize = 256 << 10;

/// The replacement of any number of secrets in a text, in one pass over it.
pub struct Redaction {
    automaton: NFA,
    /// The automaton's patterns, and their placeholders.
    patterns: Vec<(String, Arc<str>)>,
}

/// A part of a text that holds one or several secrets, which overlap.
struct Found<'a> {
    range: Range<usize>,
    /// The length of the longest of these secrets, and its placeholder.
    longest: usize,
    placeholder: &'a str,
}

impl Redaction {
    /// Redacts secrets, each with the same placeholder; very short ones are left.
    pub fn of<'a>(secrets: impl IntoIterator<Item = &'a Secret>) -> Self {
        let secrets = secrets.into_iter();
        Self::with_placeholders(secrets.map(|it| (it.expose(), PLACEHOLDER)), SHORTEST)
    }

    /// Redacts secrets of at least `shortest` bytes, each with its own placeholder.
    ///
    /// # Panics
    /// Never: the size of the automaton is limited.
    pub fn with_placeholders<'a>(
        secrets: impl IntoIterator<Item = (&'a str, &'a str)>,
        shortest: usize,
    ) -> Self {
        let (mut patterns, mut size) = (BTreeMap::new(), 0);
        let mut add = |pattern: String, placeholder: &Arc<str>| {
            let is_new = !patterns.contains_key(&pattern);
            let fits = size + pattern.len() <= MOST_BYTES;
            if is_new && fits {
                size += pattern.len();
                patterns.insert(pattern, Arc::clone(placeholder));
            } else if is_new {
                report_omission();
            }
            is_new && fits
        };
        let mut values = Vec::new();
        for (secret, placeholder) in secrets {
            let placeholder = Arc::from(placeholder);
            for value in values_in(secret, shortest) {
                if add(value.clone(), &placeholder) {
                    values.push((value, Arc::clone(&placeholder)));
                }
            }
        }
        // One encoding of all values after the other: the likeliest ones have to fit.
        for encoded in &ENCODINGS[1..] {
            for (value, placeholder) in &values {
                add(encoded(value), placeholder);
            }
        }
        let patterns: Vec<_> = patterns.into_iter().collect();
        let automaton = NFA::new(patterns.iter().map(|it| &it.0));
        Self {
            automaton: automaton.expect("the patterns are short enough"),
            patterns,
        }
    }

    /// Returns the text without the secrets; `None` if it contains none.
    #[must_use]
    pub fn redacted(&self, text: &str) -> Option<String> {
        self.redacted_with(None, text)
    }

    /// Returns the text without these secrets and others, which may overlap.
    pub(super) fn redacted_with(&self, others: Option<&Self>, text: &str) -> Option<String> {
        let mut found = Vec::new();
        for redaction in [Some(self), others].into_iter().flatten() {
            found.extend(redaction.find(text.as_bytes()));
            if text.contains('%') {
                // A URL may be a parameter of another one, and a secret have percent signs.
                let twice = [percent_unescaped as Unescape; 2];
                found.extend(redaction.find_decoded(text.as_bytes(), &twice[..1]));
                found.extend(redaction.find_decoded(text.as_bytes(), &twice));
            }
            if text.contains('\\') {
                found.extend(redaction.find_decoded(text.as_bytes(), &[json_unescaped]));
            }
        }
        found.sort_by_key(|it| it.range.start);
        let mut redacted = String::new();
        let mut copied = 0;
        for found in found {
            if found.range.start >= copied {
                redacted.push_str(&text[copied..found.range.start]);
                redacted.push_str(found.placeholder);
            }
            copied = copied.max(found.range.end);
        }
        (copied > 0).then(|| redacted + &text[copied..])
    }

    /// Returns the parts of the text to replace, in their order. Redacting a secret inside another
    /// must not leave the rest of the outer one in the text, so overlapping secrets are one part.
    fn find(&self, text: &[u8]) -> Vec<Found<'_>> {
        let mut all: Vec<Found<'_>> = Vec::new();
        let state = self.automaton.start_state(Anchored::No);
        let mut state = state.expect("an automaton can search without an anchor");
        for (at, byte) in text.iter().enumerate() {
            state = self.automaton.next_state(Anchored::No, state, *byte);
            if !self.automaton.is_match(state) {
                continue;
            }
            // The first pattern is the longest that ends here, and contains the others.
            let pattern = self.automaton.match_pattern(state, 0);
            let longest = self.automaton.pattern_len(pattern);
            let mut new = Found {
                range: at + 1 - longest..at + 1,
                longest,
                placeholder: &self.patterns[pattern].1,
            };
            while let Some(last) = all.pop_if(|last| last.range.end > new.range.start) {
                new.range.start = new.range.start.min(last.range.start);
                if last.longest >= new.longest {
                    (new.longest, new.placeholder) = (last.longest, last.placeholder);
                }
            }
            all.push(new);
        }
        let places = (0..text.len()).rev();
        let marks = places.filter(|at| text[*at..].starts_with(CUT));
        let cuts = marks.take(MOST_CUTS);
        all.extend(cuts.filter_map(|cut| self.find_cut(text, cut)));
        all
    }

    /// Does the same in the text without its escapes, of which encoders choose different ones.
    fn find_decoded(&self, text: &[u8], unescapes: &[Unescape]) -> Vec<Found<'_>> {
        let is_escape = |at: usize| unescapes.iter().any(|it| it(&text[at..]).is_some());
        if !(0..text.len()).any(is_escape) {
            return Vec::new();
        }
        let (mut decoded, mut places) = (text.to_vec(), Vec::new());
        for unescape in unescapes {
            let (from, of, mut at) = (decoded, places, 0);
            (decoded, places) = (Vec::new(), Vec::new());
            // The first text has no places of its own: each byte is where it is.
            let place_of = |at: usize| of.get(at).copied().unwrap_or(at);
            while at < from.len() {
                let Some((bytes, length)) = unescape(&from[at..]) else {
                    places.push(place_of(at));
                    decoded.push(from[at]);
                    at += 1;
                    continue;
                };
                places.resize(places.len() + bytes.len(), place_of(at));
                decoded.extend(bytes);
                at += length;
            }
            places.push(place_of(at));
        }
        let mut found = self.find(&decoded);
        let ranges = found.iter_mut().map(|it| &mut it.range);
        ranges.for_each(|it| *it = places[it.start]..places[it.end]);
        found
    }

    /// Returns the start of a secret before a mark of a cut, which may be within an escape.
    fn find_cut(&self, text: &[u8], cut: usize) -> Option<Found<'_>> {
        let escape = text[..cut].iter().rposition(|it| *it == b'%');
        let shown = &text[..escape.filter(|at| cut - at < 3).unwrap_or(cut)];
        let starts = self.patterns.iter().filter_map(|(secret, placeholder)| {
            let mut lengths = (SHORTEST_START..secret.len()).rev();
            let is_shown = |length: &usize| shown.ends_with(&secret.as_bytes()[..*length]);
            Some((lengths.find(is_shown)?, placeholder))
        });
        let (longest, placeholder) = starts.max_by_key(|it| it.0)?;
        let range = shown.len() - longest..cut;
        Some(Found {
            range,
            longest,
            placeholder,
        })
    }
}

/// Returns the bytes of the escape at the start of a text, and the length of the escape.
type Unescape = fn(&[u8]) -> Option<(Vec<u8>, usize)>;

fn percent_unescaped(text: &[u8]) -> Option<(Vec<u8>, usize)> {
    let escape = text.get(..3).filter(|it| it[0] == b'%')?;
    let bytes: Vec<_> = percent_decode(escape).collect();
    (bytes.len() == 1).then_some((bytes, 3))
}

/// RFC 8259, 7: writers may escape any character.
fn json_unescaped(text: &[u8]) -> Option<(Vec<u8>, usize)> {
    // Two escapes may be one character.
    let lengths: &[usize] = match text.get(..2)? {
        br"\u" => &[6, 12],
        [b'\\', _] => &[2],
        _ => return None,
    };
    lengths.iter().find_map(|length| {
        let quoted = [b"\"", text.get(..*length)?, b"\""].concat();
        let unescaped: String = serde_json::from_slice(&quoted).ok()?;
        Some((unescaped.into(), *length))
    })
}

/// Logs, once, that not all secrets are redacted in all encodings.
fn report_omission() {
    static REPORT: std::sync::Once = std::sync::Once::new();
    const TEXT: &str =
        "the secrets have more than 256 KiB in all encodings; some encodings are not redacted";
    REPORT.call_once(|| {
        // On another thread: this one may be writing a line of the log.
        let report = || tracing::warn!(target: "lambda_tools::secrets", "{TEXT}");
        let _ = std::thread::Builder::new().spawn(report);
    });
}

#[cfg(test)]
mod tests;
