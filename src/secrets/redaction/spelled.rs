//! A text with all that it can be read as: the bytes that are there, and what its escapes say.
//!
//! URLs, JSON, Rust's `Debug` and layers of them write one secret in many ways, and nobody knows
//! which of them a text is in. Decoding it as a whole would lose what only looks like an escape: in
//! `C:\newest-key`, the `n` is the first letter of a secret. So each position keeps every reading.

use std::{cell::Cell, collections::HashSet};

/// The number of bytes that a search begins with.
pub(super) const HEAD: usize = 6;

/// More readings of one position, and more ways from there, are not followed: texts may be made to
/// have any number of them.
const MOST_READINGS: usize = 16;
const MOST_WAYS: usize = 1000;

/// How many steps one text may take in all. What is left after them counts as secret: no text may
/// take seconds, and none show a secret for being difficult.
const MOST_STEPS: usize = 2_000_000;

pub(super) struct SpelledOut<'t> {
    text: &'t [u8],
    /// Those that start last come first.
    escapes: Vec<EscapeSequence>,
    steps: Cell<usize>,
}

/// Several characters that may stand for one.
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

/// Forms have a plus for a space.
fn folded(byte: u8) -> u8 {
    if byte == b'+' { b' ' } else { byte }
}

fn longer(head: u64, byte: u8) -> u64 {
    head << 8 | u64::from(folded(byte))
}

/// The first bytes of what is searched for.
pub(super) fn head_of(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |head, byte| longer(head, *byte))
}

impl<'t> SpelledOut<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        let mut this = Self {
            text: text.as_bytes(),
            escapes: Vec::new(),
            steps: Cell::new(MOST_STEPS),
        };
        // From the end, so that what follows an escape is known already, escapes in it included.
        let mut end = text.len();
        while let Some(at) = memchr::memrchr3(b'%', b'\\', b',', &this.text[..end]) {
            this.read(at);
            end = at;
        }
        this
    }

    /// Calls back with each position and each head of full length that can be read there, if
    /// `begins` knows it; it is asked about shorter ones before, with their lengths.
    pub(super) fn each_head(
        &self,
        begins: impl Fn(u64, usize) -> bool,
        mut found: impl FnMut(usize, u64),
    ) {
        let mut behind = self.escapes.len();
        let mut open = Vec::new();
        for at in 0..self.text.len() {
            while behind > 0 && self.escapes[behind - 1].start < at {
                behind -= 1;
            }
            if behind > 0 && self.escapes[behind - 1].start < at + HEAD {
                self.branching_heads(at, &mut open, &begins, &mut found);
            } else if let Some(bytes) = self.text.get(at..at + HEAD) {
                let head = head_of(bytes);
                if begins(head, HEAD) {
                    found(at, head);
                }
            }
        }
    }

    fn branching_heads(
        &self,
        start: usize,
        open: &mut Vec<(usize, u64, usize)>,
        begins: &impl Fn(u64, usize) -> bool,
        found: &mut impl FnMut(usize, u64),
    ) {
        open.clear();
        open.push((start, 0, 0));
        for _ in 0..MOST_WAYS {
            let Some((at, head, len)) = open.pop() else {
                return;
            };
            if len == HEAD {
                found(start, head);
                continue;
            }
            let mut follow = |bytes: &[u8], end| {
                let bytes = &bytes[..bytes.len().min(HEAD - len)];
                let head = bytes.iter().fold(head, |head, byte| longer(head, *byte));
                let len = len + bytes.len();
                if begins(head, len) {
                    open.push((end, head, len));
                }
            };
            for escape in self.escapes_at(at) {
                follow(escape.bytes(), escape.end);
            }
            if let Some(byte) = self.text.get(at) {
                follow(&[*byte], at + 1);
            }
        }
    }

    /// Where `searched` ends if it begins at `at`; the last of several such places.
    pub(super) fn end_of(&self, searched: &[u8], at: usize) -> Option<usize> {
        let mut end = None;
        let mut open = Vec::new();
        let mut tried = HashSet::new();
        let mut next = Some((at, searched));
        while let Some((at, left)) = next {
            let Some(steps) = self.steps.get().checked_sub(1) else {
                return Some(self.text.len());
            };
            self.steps.set(steps);
            let Some(first) = left.first() else {
                end = end.max(Some(at));
                next = open.pop();
                continue;
            };
            for escape in self.escapes_at(at) {
                let bytes = escape.bytes();
                let is_same = |(one, other): (&u8, &u8)| folded(*one) == folded(*other);
                let is_read = bytes.len() <= left.len() && bytes.iter().zip(left).all(is_same);
                let further = &left[bytes.len().min(left.len())..];
                if is_read && tried.insert((escape.end, further.len())) {
                    open.push((escape.end, further));
                }
            }
            next = match self.text.get(at) {
                Some(byte) if folded(*byte) == folded(*first) => Some((at + 1, &left[1..])),
                _ => open.pop(),
            };
        }
        end
    }

    /// The end of the one byte at `at`, if it can be read as one that is asked for; the last of
    /// several such places.
    pub(super) fn end_of_one(&self, at: usize, is_it: impl Fn(u8) -> bool) -> Option<usize> {
        let ends = self.readings(at).filter(|(byte, _)| is_it(*byte));
        ends.map(|(_, end)| end).max()
    }

    fn escapes_at(&self, at: usize) -> &[EscapeSequence] {
        if !matches!(self.text.get(at), Some(b'%' | b'\\' | b',')) {
            return &[];
        }
        let behind = self.escapes.partition_point(|escape| escape.start > at);
        let here = &self.escapes[behind..];
        &here[..here.partition_point(|escape| escape.start == at)]
    }

    /// What single bytes can be read at `at`, and where they end.
    fn readings(&self, at: usize) -> impl Iterator<Item = (u8, usize)> {
        let itself = self.text.get(at).map(|byte| (*byte, at + 1));
        let escapes = self.escapes_at(at).iter();
        let escapes = escapes.filter(|escape| escape.len == 1);
        itself
            .into_iter()
            .chain(escapes.map(|escape| (escape.bytes[0], escape.end)))
    }

    /// Finds the escapes that start at `at`, those whose first character is written as an escape
    /// included.
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

    fn add(&mut self, start: usize, end: usize, read: &[u8]) {
        let known = self.escapes_at(start);
        let is_known = |escape: &EscapeSequence| escape.end == end && escape.bytes() == read;
        if known.len() < MOST_READINGS && !known.iter().any(is_known) {
            let mut bytes = [0; 4];
            bytes[..read.len()].copy_from_slice(read);
            let len = read.len();
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

    /// Each layer of quoting doubles backslashes: any number of them may be one.
    fn read_backslash(&mut self, start: usize, at: usize) {
        if let Some(end) = self.end_of_one(at, |byte| byte == b'\\') {
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
        if let Some((read, end)) = self.unicode(at) {
            self.add(start, end, read.encode_utf8(&mut [0; 4]).as_bytes());
        }
    }

    /// What stands behind `\u`: Rust's number in braces, or JSON's four digits, twice for what is
    /// beyond them.
    fn unicode(&self, at: usize) -> Option<(char, usize)> {
        if let Some(inside) = self.end_of_one(at, |byte| byte == b'{') {
            let (code, end) = (1..=6).find_map(|digits| {
                let (code, end) = self.number(inside, digits)?;
                Some((code, self.end_of_one(end, |byte| byte == b'}')?))
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
                let at = self.end_of_one(at, |byte| byte == b'u')?;
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

    /// Lists of numbers are written with a comma, and with or without blanks or a new line.
    fn read_comma(&mut self, start: usize, at: usize) {
        let is_list = start > 0 && self.text[start - 1].is_ascii_digit();
        if !is_list {
            return;
        }
        let is_blank = |byte: u8| byte.is_ascii_whitespace() || byte == b'+';
        let mut end = at;
        while let Some(further) = self.end_of_one(end, is_blank) {
            end = further;
        }
        if end > at {
            self.add(start, end, b",");
        }
    }
}
