//! Taking secrets out of text that leaves the server.
//!
//! A tool's errors are other people's: an HTTP client quotes the URL with the key in it, an API
//! repeats the token that it refuses. What a call was given as secret does not leave in them, in
//! whichever encoding it is there. Failures, logs, panics, spans and recordings all use this.

mod forms;
mod spelled;

use std::{
    collections::HashMap,
    fmt,
    hash::{BuildHasher, RandomState},
    ops::Range,
    sync::Arc,
};

use forms::{EncodedForm, forms_of};
use spelled::{HEAD, SpelledOut, head_of};

/// Shorter ones stand in ordinary words by chance; they are no secrets that matter, and
/// answers should stay readable.
pub(crate) const SHORTEST: usize = 8;

/// In a repository more is at stake, and less has to be read.
pub(crate) const SHORTEST_TO_RECORD: usize = HEAD;

pub(crate) const PLACEHOLDER: &str = "[secret]";

/// What one secret is found by. Made once for it, because it has many forms.
pub(crate) struct Redactor(Vec<Arc<EncodedForm>>);

impl Redactor {
    /// A secret that is shorter than `shortest` is not looked for.
    pub(crate) fn new(secret: &str, shortest: usize) -> Self {
        let forms = forms_of(secret, shortest.max(HEAD)).into_iter();
        Self(forms.map(Arc::new).collect())
    }

    /// How many bytes it keeps, about.
    pub(crate) fn size(&self) -> usize {
        /// What a form takes besides its text, in the redactor and in the index.
        const BESIDES: usize = 160;
        self.0.iter().map(|form| form.text.len() + BESIDES).sum()
    }
}

/// A form, and what is written in its place.
type SearchTerm = (Arc<EncodedForm>, Arc<str>);

/// Takes any number of secrets out of texts, in one pass over each.
pub(crate) struct Redaction {
    /// The forms by a hash of their first bytes. Keyed, so that it says nothing of them.
    forms: HashMap<u64, Vec<SearchTerm>>,
    hasher: RandomState,
    /// A bit for each beginning that a form has, of any length up to that of a head: what is read at
    /// most positions of a text is none.
    beginnings: Vec<u64>,
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
    /// For more secrets than those of a call; `words` is a power of two, so that finding one takes no
    /// division.
    pub(crate) fn with_room(words: usize) -> Self {
        Self {
            forms: HashMap::new(),
            hasher: RandomState::new(),
            beginnings: vec![0; words],
        }
    }

    pub(crate) fn add(&mut self, redactor: &Redactor, placeholder: &Arc<str>) {
        for form in &redactor.0 {
            mark(&mut self.beginnings, form);
            let hash = self.hasher.hash_one(form.head());
            let forms = self.forms.entry(hash).or_default();
            forms.push((Arc::clone(form), Arc::clone(placeholder)));
        }
    }

    pub(crate) fn remove(&mut self, redactor: &Redactor) {
        for form in &redactor.0 {
            let hash = self.hasher.hash_one(form.head());
            if let Some(forms) = self.forms.get_mut(&hash) {
                forms.retain(|(it, _)| !Arc::ptr_eq(it, form));
                if forms.is_empty() {
                    self.forms.remove(&hash);
                }
            }
        }
    }

    /// Forgets the beginnings of forms that were removed, which are harmless but slow.
    pub(crate) fn tidy(&mut self) {
        self.beginnings.fill(0);
        for (form, _) in self.forms.values().flatten() {
            mark(&mut self.beginnings, form);
        }
    }

    /// The text without the secrets. `None` where there are none in it.
    pub(crate) fn redacted(&self, text: &str) -> Option<String> {
        if self.forms.is_empty() || text.len() < HEAD {
            return None;
        }
        let found = self.found(text);
        (!found.is_empty()).then(|| replaced(text, found))
    }

    /// Where the secrets are, and what is to be there instead.
    fn found(&self, text: &str) -> Vec<(Range<usize>, &str)> {
        let spelled = SpelledOut::new(text);
        let mut found = Vec::new();
        let begins = |head, len| {
            let (word, bit) = place_of(head, len, &self.beginnings);
            self.beginnings[word] & bit != 0
        };
        spelled.each_head(begins, |start, head| {
            let forms = self.forms.get(&self.hasher.hash_one(head));
            for (form, placeholder) in forms.into_iter().flatten() {
                if let Some(end) = spelled.end_of(&form.text, start) {
                    let whole = with_its_edges(form, start..end, text, &spelled);
                    found.push((whole, &**placeholder));
                }
            }
        });
        found
    }
}

fn mark(beginnings: &mut [u64], form: &EncodedForm) {
    for len in 1..=HEAD {
        let (word, bit) = place_of(head_of(&form.text[..len]), len, beginnings);
        beginnings[word] |= bit;
    }
}

/// The word and the bit for a beginning.
fn place_of(beginning: u64, len: usize, beginnings: &[u64]) -> (usize, u64) {
    let hash = (beginning << 3 | len as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let word = usize::try_from(hash >> 40).expect("24 bits are a usize");
    (word & (beginnings.len() - 1), 1 << (hash >> 34 & 63))
}

/// With the characters beside it that have a few bits of it, and the padding.
fn with_its_edges(
    form: &EncodedForm,
    Range { mut start, mut end }: Range<usize>,
    text: &str,
    spelled: &SpelledOut<'_>,
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
        end = spelled.end_of_one(end, is_base64).unwrap_or(end);
        for _ in 0..2 {
            end = spelled.end_of_one(end, |byte| byte == b'=').unwrap_or(end);
        }
    }
    text.floor_char_boundary(start)..text.ceil_char_boundary(end)
}

/// Of what overlaps, the longest has a say: one secret may stand in another, and must not leave the
/// rest of it behind.
fn replaced(text: &str, mut found: Vec<(Range<usize>, &str)>) -> String {
    found.sort_by_key(|(range, _)| (range.start, std::cmp::Reverse(range.end)));
    let mut redacted = String::with_capacity(text.len());
    let mut copied = 0;
    let mut rest = found.into_iter().peekable();
    while let Some((Range { start, mut end }, mut placeholder)) = rest.next() {
        let mut longest = end - start;
        while let Some((other, its)) = rest.next_if(|(other, _)| other.start < end) {
            end = end.max(other.end);
            if other.len() > longest {
                (longest, placeholder) = (other.len(), its);
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
mod tests;
