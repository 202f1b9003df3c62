//! Limits for text that may be of any length, and the formatting of numbers.

use std::{borrow::Cow, fmt::Display, time::Duration};

use serde_json::Number;

/// The maximum length, in bytes, of an id that a caller chooses for a call or a user. `OpenID`
/// Connect Core 1.0, section 8, limits a `sub` to 255.
pub(crate) const LONGEST_ID: usize = 256;

/// The maximum length, in bytes, of a text chosen by a caller in logs and traces, which are billed
/// by volume.
pub(crate) const LONGEST_SHOWN: usize = 256;

/// Cuts text of more than `longest` bytes at a character boundary and appends an ellipsis.
pub(crate) fn clipped(text: &str, longest: usize) -> Cow<'_, str> {
    let end = text.floor_char_boundary(longest);
    if end == text.len() {
        return text.into();
    }
    format!("{}…", &text[..end]).into()
}

/// A number with its noun, in the singular for exactly one.
pub(crate) fn counted(count: impl Display, singular: &str, plural: &str) -> String {
    let count = count.to_string();
    let noun = if count == "1" { singular } else { plural };
    format!("{count} {noun}")
}

/// Milliseconds with microsecond precision; whole milliseconds have no fraction.
pub(crate) fn milliseconds(duration: Duration) -> Number {
    let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
    if micros % 1000 == 0 {
        return Number::from(micros / 1000);
    }
    #[expect(clippy::cast_precision_loss, reason = "far below 2^53 microseconds")]
    let ms = micros as f64 / 1000.0;
    Number::from_f64(ms).unwrap_or_else(|| Number::from(0))
}

#[cfg(test)]
mod tests {
    use super::{clipped, counted};

    #[test]
    fn one_is_singular() {
        assert_eq!(counted(1, "item", "items"), "1 item");
        assert_eq!(counted(0, "item", "items"), "0 items");
    }

    #[test]
    fn long_text_is_clipped_between_characters() {
        assert_eq!(clipped("T.Tool", 6), "T.Tool");
        assert_eq!(clipped("T.Tools", 6), "T.Tool…");
        assert_eq!(clipped("aéé", 4), "aé…");
        assert_eq!(clipped("", 4), "");
    }
}
