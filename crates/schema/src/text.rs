//! Texts in messages: names and values may be of any length.

use std::{borrow::Cow, fmt::Display};

/// The maximum length, in bytes, of a name in a message: names come from the caller and may be of
/// any length.
pub const LONGEST_NAME: usize = 64;

/// Cuts text of more than `longest` bytes at a character boundary and appends an ellipsis.
pub fn clipped(text: &str, longest: usize) -> Cow<'_, str> {
    let end = text.floor_char_boundary(longest);
    if end == text.len() {
        return text.into();
    }
    format!("{}…", &text[..end]).into()
}

/// Returns the path of the property `name` below `path`.
pub fn joined(path: &str, name: &str) -> String {
    let name = clipped(name, LONGEST_NAME);
    if path.is_empty() {
        name.into_owned()
    } else {
        format!("{path}.{name}")
    }
}

/// Returns a number with its noun, in the singular for exactly one.
pub fn counted(count: impl Display, singular: &str, plural: &str) -> String {
    let count = count.to_string();
    let noun = if count == "1" { singular } else { plural };
    format!("{count} {noun}")
}

/// Returns the known name that is most similar to `name`, if any is similar enough to be meant.
pub fn closest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let scored = known.map(|it| (strsim::normalized_damerau_levenshtein(name, it), it));
    let scored = scored.filter(|(similarity, _)| *similarity >= 0.5);
    let closest = scored.max_by(|(a, _), (b, _)| a.total_cmp(b));
    closest.map(|(_, known)| known)
}

#[cfg(test)]
mod tests {
    use super::{clipped, closest, counted};

    #[test]
    fn one_is_singular() {
        assert_eq!(counted(1, "item", "items"), "1 item");
        assert_eq!(counted(0, "item", "items"), "0 items");
    }

    #[test]
    fn only_a_similar_name_is_the_closest() {
        let known = || ["AUTH", "METRICS", "SECRETS"].into_iter();
        assert_eq!(closest("ATUH", known()), Some("AUTH"));
        assert_eq!(closest("SECRET", known()), Some("SECRETS"));
        assert_eq!(closest("WAREHOUSE", known()), None);
    }

    #[test]
    fn long_text_is_clipped_between_characters() {
        assert_eq!(clipped("T.Tool", 6), "T.Tool");
        assert_eq!(clipped("T.Tools", 6), "T.Tool…");
        assert_eq!(clipped("aéé", 4), "aé…");
        assert_eq!(clipped("", 4), "");
    }
}
