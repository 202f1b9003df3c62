//! A text with all its readings: its bytes, and the bytes that its escapes may encode.
//!
//! URLs, JSON, Rust's `Debug` and layers of them write one secret in many ways, and the encoding of
//! a text is not known. Decoding it as a whole would lose bytes that only look like an escape: in
//! `C:\newest-key`, the `n` is the first letter of a secret. So each position keeps every reading.

mod heads;

use std::{cell::Cell, collections::HashSet};

/// The number of bytes with which a search begins.
pub(super) const HEAD: usize = 6;

/// The fuzz targets divide limits by this, so that short texts reach them.
const SCALE: usize = if cfg!(fuzzing) { 100 } else { 1 };

/// The maximum number of readings of one position: a text can be crafted to have any number of
/// them.
const MOST_READINGS: usize = 16;

/// The maximum number of steps for one text, and for each of its bytes. The rest of the text then
/// counts as secret: no text may take seconds, and none may reveal a secret by being complex.
const MOST_STEPS: usize = 2_000_000 / SCALE;
const MOST_STEPS_PER_BYTE: usize = 16;

/// The maximum number of escapes in a text, with all their readings: they take 32 MB. Ordinary text
/// has a few for every ten bytes, but text that was escaped several times has many for each.
const MOST_ESCAPES: usize = 1_000_000 / SCALE;

/// A text and the escapes in it.
pub(super) struct TextReadings<'t> {
    text: &'t [u8],
    /// In descending order of their start.
    escapes: Vec<EscapeSequence>,
    steps: Cell<usize>,
}

/// Several characters that may encode a single one.
#[derive(Clone, Copy)]
struct EscapeSequence {
    start: usize,
    end: usize,
    bytes: [u8; 4],
    len: usize,
}

impl EscapeSequence {
    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// Treats a plus as a space, as in HTML forms.
fn fold(byte: u8) -> u8 {
    if byte == b'+' { b' ' } else { byte }
}

fn append(head: u64, byte: u8) -> u64 {
    head << 8 | u64::from(fold(byte))
}

/// Packs up to [`HEAD`] bytes into a number.
pub(super) fn head_of(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |head, byte| append(head, *byte))
}

impl<'t> TextReadings<'t> {
    /// `None` if the text has too many escapes.
    pub(super) fn new(text: &'t str) -> Option<Self> {
        let mut this = Self {
            text: text.as_bytes(),
            escapes: Vec::new(),
            steps: Cell::new(MOST_STEPS + MOST_STEPS_PER_BYTE * text.len()),
        };
        // Backwards, so that all readings of the text after an escape are already known.
        let mut end = text.len();
        while let Some(at) = memchr::memrchr3(b'%', b'\\', b',', &this.text[..end]) {
            this.read(at);
            if this.escapes.len() > MOST_ESCAPES {
                return None;
            }
            end = at;
        }
        Some(this)
    }

    /// False if no steps are left.
    fn take_step(&self) -> bool {
        let left = self.steps.get().checked_sub(1);
        self.steps.set(left.unwrap_or_default());
        left.is_some()
    }

    /// The end of `needle` if it can be read at `at`; the last of several possible ends.
    pub(super) fn end_of(&self, needle: &[u8], at: usize) -> Option<usize> {
        let mut end = None;
        let mut open = Vec::new();
        let mut tried = HashSet::new();
        let mut next = Some((at, needle));
        while let Some((at, left)) = next {
            if !self.take_step() {
                return Some(self.text.len());
            }
            let Some(first) = left.first() else {
                end = end.max(Some(at));
                next = open.pop();
                continue;
            };
            for escape in self.escapes_at(at) {
                let bytes = escape.bytes();
                let is_same = |(byte, other): (&u8, &u8)| fold(*byte) == fold(*other);
                let is_match = bytes.len() <= left.len() && bytes.iter().zip(left).all(is_same);
                let rest = &left[bytes.len().min(left.len())..];
                if is_match && tried.insert((escape.end, rest.len())) {
                    open.push((escape.end, rest));
                }
            }
            next = match self.text.get(at) {
                Some(byte) if fold(*byte) == fold(*first) => Some((at + 1, &left[1..])),
                _ => open.pop(),
            };
        }
        end
    }

    /// The end of the byte at `at` if it can be read as one that `accepts` returns true for; the
    /// last of several possible ends.
    pub(super) fn end_of_byte(&self, at: usize, accepts: impl Fn(u8) -> bool) -> Option<usize> {
        let readings = self.readings(at).filter(|(byte, _)| accepts(*byte));
        readings.map(|(_, end)| end).max()
    }

    fn escapes_at(&self, at: usize) -> &[EscapeSequence] {
        if !matches!(self.text.get(at), Some(b'%' | b'\\' | b',')) {
            return &[];
        }
        let first = self.escapes.partition_point(|escape| escape.start > at);
        let escapes = &self.escapes[first..];
        &escapes[..escapes.partition_point(|escape| escape.start == at)]
    }

    /// The single bytes that can be read at `at`, and their ends.
    fn readings(&self, at: usize) -> impl Iterator<Item = (u8, usize)> {
        let itself = self.text.get(at).map(|byte| (*byte, at + 1));
        let escapes = self.escapes_at(at).iter();
        let escapes = escapes.filter(|escape| escape.len == 1);
        itself
            .into_iter()
            .chain(escapes.map(|escape| (escape.bytes[0], escape.end)))
    }

    /// Finds the escapes that start at `at`, including those whose first character is itself
    /// escaped.
    fn read(&mut self, at: usize) {
        let mut next = self.escapes.len();
        self.read_as(at, self.text[at], at + 1);
        while let Some(escape) = self.escapes.get(next).copied() {
            if escape.len == 1 {
                self.read_as(at, escape.bytes[0], escape.end);
            }
            next += 1;
        }
    }

    /// Finds the escapes at `start` that begin with `byte`, which ends at `end`.
    fn read_as(&mut self, start: usize, byte: u8, end: usize) {
        match byte {
            b'%' => self.read_hex(start, end),
            b'\\' => self.read_backslash(start, end),
            b',' => self.read_comma(start, end),
            _ => {}
        }
    }

    fn add(&mut self, start: usize, end: usize, decoded: &[u8]) {
        let escapes = self.escapes_at(start);
        let is_same = |escape: &EscapeSequence| escape.end == end && escape.bytes() == decoded;
        if escapes.len() < MOST_READINGS && !escapes.iter().any(is_same) {
            let mut bytes = [0; 4];
            bytes[..decoded.len()].copy_from_slice(decoded);
            let len = decoded.len();
            self.escapes.push(EscapeSequence {
                start,
                end,
                bytes,
                len,
            });
        }
    }

    fn read_hex(&mut self, start: usize, at: usize) {
        if let Some((byte, end)) = self.number(at, 2) {
            self.add(start, end, &byte.to_be_bytes()[3..]);
        }
    }

    /// Each layer of quoting doubles backslashes, so any number of them may encode a single one.
    fn read_backslash(&mut self, start: usize, at: usize) {
        if let Some(end) = self.end_of_byte(at, |byte| byte == b'\\') {
            self.add(start, end, b"\\");
        }
        // Not only the longest reading: what follows a run of backslashes, such as `u005c`, may
        // belong to the secret instead of encoding a further one. Within a run, all are spelled the
        // same way, such as `%5C`.
        let ends_run = |end: usize| !self.text[end..].starts_with(&self.text[at..end]);
        let readings = self.readings(at);
        let end =
            readings.filter_map(|(byte, end)| (byte == b'\\' && ends_run(end)).then_some(end));
        if let Some(end) = end.min() {
            self.add(start, end, b"\\");
        }
        let letters: Vec<_> = self.readings(at).collect();
        for (letter, end) in letters {
            let byte = match letter {
                b'0' => 0,
                b'b' => 8,
                b't' => b'\t',
                b'n' => b'\n',
                b'f' => 12,
                b'r' => b'\r',
                b'x' => {
                    self.read_hex(start, end);
                    continue;
                }
                b'u' => {
                    self.read_unicode(start, end);
                    continue;
                }
                other if other.is_ascii_punctuation() && !b"%\\".contains(&other) => other,
                _ => continue,
            };
            self.add(start, end, &[byte]);
        }
    }

    fn read_unicode(&mut self, start: usize, at: usize) {
        if let Some((character, end)) = self.unicode(at) {
            self.add(start, end, character.encode_utf8(&mut [0; 4]).as_bytes());
        }
    }

    /// The character after `\u`: Rust's number in braces, or JSON's four digits, or two such
    /// escapes for a surrogate pair.
    fn unicode(&self, at: usize) -> Option<(char, usize)> {
        if let Some(inside) = self.end_of_byte(at, |byte| byte == b'{') {
            let (code, end) = (1..=6).find_map(|digits| {
                let (code, end) = self.number(inside, digits)?;
                Some((code, self.end_of_byte(end, |byte| byte == b'}')?))
            })?;
            return Some((char::from_u32(code)?, end));
        }
        let (high, end) = self.number(at, 4)?;
        if !(0xD800..0xDC00).contains(&high) {
            return Some((char::from_u32(high)?, end));
        }
        let backslashes = self.readings(end).filter(|(byte, _)| *byte == b'\\');
        let (low, end) = backslashes
            .filter_map(|(_, at)| {
                let at = self.end_of_byte(at, |byte| byte == b'u')?;
                self.number(at, 4)
            })
            .find(|(low, _)| (0xDC00..0xE000).contains(low))?;
        let code = 0x1_0000 + ((high - 0xD800) << 10) + (low - 0xDC00);
        Some((char::from_u32(code)?, end))
    }

    fn number(&self, mut at: usize, digits: usize) -> Option<(u32, usize)> {
        let mut number = 0;
        for _ in 0..digits {
            let digit = |(byte, end)| Some((char::from(byte).to_digit(16)?, end));
            let (digit, end) = self.readings(at).find_map(digit)?;
            number = number << 4 | digit;
            at = end;
        }
        Some((number, at))
    }

    /// The comma in a list of numbers may be followed by spaces or a line break.
    fn read_comma(&mut self, start: usize, at: usize) {
        let is_list = start > 0 && self.text[start - 1].is_ascii_digit();
        if !is_list {
            return;
        }
        let is_blank = |byte: u8| byte.is_ascii_whitespace() || byte == b'+';
        let mut end = at;
        while let Some(next) = self.end_of_byte(end, is_blank) {
            end = next;
        }
        if end > at {
            self.add(start, end, b",");
        }
    }
}
