//! Descriptions for models, from those for people.

use serde_json::Value;

use crate::{names::in_words, operation::Operation};

/// The maximum length, in bytes, of a tool's description.
const LONGEST_TOOL: usize = 1024;

/// Returns the description of an operation's tool, with further sentences for the model.
pub(crate) fn description_of(
    operation: &Operation,
    chosen: Option<&String>,
    notes: &[String],
) -> String {
    let extension = operation.own_extension();
    let extension = extension.and_then(|it| it.get("description")?.as_str());
    let written = chosen.map(String::as_str).or(extension);
    let text = written.map_or_else(|| text_of(operation), str::to_owned);
    let notes = notes.join(" ");
    let room = LONGEST_TOOL.saturating_sub(notes.len() + 1);
    let text = sentence(cut(&text, room.max(LONGEST_TOOL / 2) - 1));
    let text = format!("{text} {notes}");
    cut(text.trim_end(), LONGEST_TOOL).to_owned()
}

/// Returns true if neither the operation nor its path says what it does.
pub(crate) fn is_undescribed(operation: &Operation) -> bool {
    let mut fields = ["summary", "description"].iter();
    fields.all(|it| operation.text(it).is_none())
}

fn text_of(operation: &Operation) -> String {
    let summary = operation.text("summary").map(plain).unwrap_or_default();
    let description = operation.text("description").map(plain).unwrap_or_default();
    let is_deprecated = operation.object.get("deprecated") == Some(&Value::Bool(true));
    let text = match (&*summary, &*description) {
        ("", "") => named(operation),
        (summary, description) if says(description, summary) => description.to_owned(),
        (summary, "") => summary.to_owned(),
        (summary, description) => format!("{} {description}", sentence(summary)),
    };
    format!("{}{text}", if is_deprecated { "(deprecated) " } else { "" })
}

/// Returns true if the description begins with the summary.
fn says(description: &str, summary: &str) -> bool {
    let start = description.get(..summary.len()).unwrap_or_default();
    !description.is_empty() && start.eq_ignore_ascii_case(summary)
}

/// Returns a description for an operation that has none: `GET /channels/{id}: get channel`.
fn named(operation: &Operation) -> String {
    let words = in_words(operation.id().unwrap_or(operation.path));
    format!("{}: {}", operation.label(), words.to_ascii_lowercase())
}

/// Returns the first paragraph of an API's description that is no heading of Markdown.
pub(crate) fn first_paragraph(text: &str) -> String {
    let text = text.replace('\r', "");
    let mut paragraphs = text.split("\n\n").map(plain);
    let first = paragraphs.find(|it| !it.is_empty() && !it.starts_with('#'));
    cut(&first.unwrap_or_default(), LONGEST_TOOL).to_owned()
}

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
