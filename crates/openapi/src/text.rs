//! Descriptions for models, from those for people.

use lambda_tools_schema::text::{cut, in_words, plain, sentence};
use serde_json::Value;

use crate::operation::Operation;

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
