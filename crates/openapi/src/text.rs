//! Descriptions for models, from those for people.

/// The maximum length, in bytes, of a tool's description.
pub(crate) const LONGEST_TOOL: usize = 1024;

/// Returns a text in one line, without images, links and HTML.
pub(crate) fn plain(text: &str) -> String {
    let text = without_html(&without_links(text));
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Cuts a text of more than `longest` bytes after a sentence or, failing that, after a word.
pub(crate) fn cut(text: &str, longest: usize) -> &str {
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
pub(crate) fn sentence(text: &str) -> String {
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
        if let Some(before) = rest[..open].strip_suffix('!') {
            plain.push_str(before);
        } else {
            plain.push_str(&rest[..open]);
            plain.push_str(&rest[open + 1..middle]);
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
        if let Some(end) = rest.find('>').filter(|_| begins_tag) {
            plain.push(' ');
            rest = &rest[end + 1..];
        } else {
            plain.push('<');
            rest = &rest[1..];
        }
    }
    plain + rest
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
