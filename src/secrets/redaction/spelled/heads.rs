//! The first bytes of every reading of a text: most positions hold the beginning of no secret.

use super::{HEAD, TextReadings, append, head_of};

/// The maximum number of prefixes that can be read at one position. Beyond it, the rest of the text
/// counts as secret.
const MOST_PREFIXES: usize = 256;

/// The first bytes of a reading, up to [`HEAD`], and their end in the text.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Prefix {
    head: u64,
    len: usize,
    end: usize,
}

impl Prefix {
    fn empty(end: usize) -> Self {
        Self {
            head: 0,
            len: 0,
            end,
        }
    }

    /// Of a full head, the end does not matter.
    fn followed_by(self, bytes: &[u8], end: usize) -> Self {
        let bytes = &bytes[..bytes.len().min(HEAD - self.len)];
        let len = self.len + bytes.len();
        Self {
            head: bytes
                .iter()
                .fold(self.head, |head, byte| append(head, *byte)),
            len,
            end: if len == HEAD { 0 } else { end },
        }
    }
}

impl TextReadings<'_> {
    /// Calls `visit` with each position and each full head that can be read there, if `is_prefix`
    /// accepts it. `is_prefix` takes a prefix and its length; it may be called with shorter
    /// prefixes first, and rejecting one rules out all heads that begin with it. Returns the
    /// position from which the text is too complex to be searched.
    pub(in super::super) fn each_head(
        &self,
        is_prefix: impl Fn(u64, usize) -> bool,
        mut visit: impl FnMut(usize, u64),
    ) -> Option<usize> {
        // The escapes below this index start at or after the position.
        let mut ahead = self.escapes.len();
        let mut prefixes = Vec::new();
        for at in 0..self.text.len() {
            while ahead > 0 && self.escapes[ahead - 1].start < at {
                ahead -= 1;
            }
            if ahead > 0 && self.escapes[ahead - 1].start < at + HEAD {
                if !self.read_prefixes(at, &is_prefix, &mut prefixes) {
                    return Some(at);
                }
                let heads = prefixes.iter().filter(|prefix| prefix.len == HEAD);
                heads.for_each(|prefix| visit(at, prefix.head));
            } else if let Some(bytes) = self.text.get(at..at + HEAD) {
                let head = head_of(bytes);
                if is_prefix(head, HEAD) {
                    visit(at, head);
                }
            }
        }
        None
    }

    /// Finds the prefixes that can be read at `start`, each of them once for each of its ends.
    /// Returns false if there are too many.
    fn read_prefixes(
        &self,
        start: usize,
        is_prefix: &impl Fn(u64, usize) -> bool,
        prefixes: &mut Vec<Prefix>,
    ) -> bool {
        prefixes.clear();
        prefixes.push(Prefix::empty(start));
        let mut next = 0;
        while let Some(prefix) = prefixes.get(next).copied() {
            next += 1;
            if prefix.len == HEAD {
                continue;
            }
            let escapes = self.escapes_at(prefix.end).iter();
            let escapes = escapes.map(|escape| (escape.bytes(), escape.end));
            let itself = self.text[prefix.end..].chunks(1).take(1);
            for (bytes, end) in escapes.chain(itself.map(|byte| (byte, prefix.end + 1))) {
                let longer = prefix.followed_by(bytes, end);
                if !is_prefix(longer.head, longer.len) {
                    continue;
                }
                if !self.take_step() || prefixes.len() > MOST_PREFIXES {
                    return false;
                }
                if !prefixes.contains(&longer) {
                    prefixes.push(longer);
                }
            }
        }
        true
    }
}
