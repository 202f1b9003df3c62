//! Texts of others, which may be of any length, and how numbers are written.

use std::{borrow::Cow, time::Duration};

use serde_json::Number;

/// The longest id that a caller may choose for a call or a user, in bytes. `OpenID` Connect Core
/// 1.0, 8, gives a `sub` 255.
pub(crate) const LONGEST_ID: usize = 256;

/// The longest text of a caller's choice in logs and traces, in bytes: both are paid for.
pub(crate) const LONGEST_SHOWN: usize = 256;

/// The beginning of a text of more than this many bytes, with an ellipsis behind it.
pub(crate) fn clipped(text: &str, longest: usize) -> Cow<'_, str> {
    let end = text.floor_char_boundary(longest);
    if end == text.len() {
        return text.into();
    }
    format!("{}…", &text[..end]).into()
}

/// Milliseconds to the microsecond; whole ones without a fraction.
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
    use super::clipped;

    #[test]
    fn what_is_too_long_is_clipped_between_characters() {
        assert_eq!(clipped("T.Tool", 6), "T.Tool");
        assert_eq!(clipped("T.Tools", 6), "T.Tool…");
        assert_eq!(clipped("aéé", 4), "aé…");
        assert_eq!(clipped("", 4), "");
    }
}
