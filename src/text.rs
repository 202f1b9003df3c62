//! Texts of others, which may be of any length.

use std::borrow::Cow;

/// The longest id that a caller may choose for a call or a user, in bytes. `OpenID` Connect Core
/// 1.0, 8, gives a `sub` 255.
pub(crate) const LONGEST_ID: usize = 256;

/// The beginning of a text of more than this many bytes, with an ellipsis behind it.
pub(crate) fn clipped(text: &str, longest: usize) -> Cow<'_, str> {
    let end = text.floor_char_boundary(longest);
    if end == text.len() {
        return text.into();
    }
    format!("{}…", &text[..end]).into()
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
