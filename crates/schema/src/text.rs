//! Texts in messages: names and values may be of any length.

use std::{borrow::Cow, fmt::Display};

use serde_json::Value;

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

/// Returns a text as it is, and any other value as JSON.
pub fn text_of(value: &Value) -> String {
    let text = value.as_str();
    text.map_or_else(|| value.to_string(), str::to_owned)
}

/// Returns the rule that a value has a number of parts.
pub(crate) fn has_count(bound: &str, count: impl Display, singular: &str, plural: &str) -> String {
    format!("Must have {bound} {}", counted(count, singular, plural))
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

/// Returns a text in one line, without images, links and HTML.
pub fn plain(text: &str) -> String {
    let text = without_html(&without_links(text));
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Cuts a text of more than `longest` bytes after a sentence or, failing that, after a word.
pub fn cut(text: &str, longest: usize) -> &str {
    if text.len() <= longest {
        return text;
    }
    let start = &text[..text.floor_char_boundary(longest)];
    let sentence = start.rfind(". ").map(|at| at + 1);
    let sentence = sentence.filter(|at| *at > longest / 3);
    let end = sentence.or_else(|| start.rfind(' ')).unwrap_or(start.len());
    start[..end].trim_end()
}

/// Returns the text with a period, unless it ends a sentence already.
pub fn sentence(text: &str) -> String {
    let ends = text.ends_with(['.', '!', '?', ':']);
    format!("{text}{}", if ends { "" } else { "." })
}

/// Replaces `[text](url)` by the text, and removes `![text](url)`.
fn without_links(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(open) = rest.find('[') {
        let link = rest[open..].find("](").map(|it| open + it);
        let link = link.filter(|middle| !rest[open + 1..*middle].contains(['[', ']', '\n']));
        let end = link.and_then(|middle| rest[middle..].find(')').map(|it| middle + it));
        let (Some(middle), Some(end)) = (link, end) else {
            plain.push_str(&rest[..=open]);
            rest = &rest[open + 1..];
            continue;
        };
        match rest[..open].strip_suffix('!') {
            Some(before) => plain += before,
            None => plain.extend([&rest[..open], &rest[open + 1..middle]]),
        }
        rest = &rest[end + 1..];
    }
    plain + rest
}

/// Removes tags and comments. A `<` that begins neither stays.
fn without_html(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(open) = rest.find('<') {
        plain.push_str(&rest[..open]);
        rest = &rest[open..];
        let begins_tag =
            rest[1..].starts_with(|it: char| it.is_ascii_alphabetic() || it == '/' || it == '!');
        let end = rest.find('>').filter(|_| begins_tag);
        plain.push(if end.is_some() { ' ' } else { '<' });
        rest = &rest[end.unwrap_or(0) + 1..];
    }
    plain + rest
}

/// Returns a name in words, to describe what has no description: `Channel id`.
pub fn in_words(name: &str) -> String {
    let words = words_of(name);
    let words: Vec<_> = words.iter().map(|it| it.to_ascii_lowercase()).collect();
    let text = words.join(" ");
    let Some(first) = text.chars().next() else {
        return "A value".to_owned();
    };
    first.to_uppercase().chain(text.chars().skip(1)).collect()
}

/// Returns the words of a name: parts between other characters, and parts that begin with a capital
/// letter.
pub fn words_of(name: &str) -> Vec<&str> {
    let parts = name.split(|it: char| !it.is_ascii_alphanumeric());
    let words = parts.flat_map(split_at_capitals);
    words.filter(|it| !it.is_empty()).collect()
}

fn split_at_capitals(part: &str) -> Vec<&str> {
    let bytes = part.as_bytes();
    let begins = |at: usize| {
        let is_upper = bytes[at].is_ascii_uppercase();
        let after_lower = !bytes[at - 1].is_ascii_uppercase();
        let before_lower = bytes.get(at + 1).is_some_and(u8::is_ascii_lowercase);
        is_upper && (after_lower || before_lower)
    };
    let mut words = Vec::new();
    let mut start = 0;
    for at in 1..bytes.len() {
        if begins(at) {
            words.push(&part[start..at]);
            start = at;
        }
    }
    words.push(&part[start..]);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn texts_are_plain() {
        for (text, expected) in [
            ("See [the docs](https://x.example/a).", "See the docs."),
            ("![logo](a.png) A\n\n  b", "A b"),
            ("<p>One <b>two</b></p> if a < b", "One two if a < b"),
            ("an [array] and [x](", "an [array] and [x]("),
        ] {
            assert_eq!(plain(text), expected);
        }
    }

    #[test]
    fn texts_are_cut_after_sentences() {
        assert_eq!(cut("One. Two. Three.", 12), "One. Two.");
        assert_eq!(cut("One two three", 9), "One two");
        assert_eq!(cut("éééé", 3), "é");
    }

    #[test]
    fn names_have_words() {
        assert_eq!(in_words("channelId"), "Channel id");
        assert_eq!(in_words("HTTPServer_name"), "Http server name");
    }
}
