//! Messages for invalid parameters, which a person or a model can act on.
//!
//! They follow the specification's style: "Must be a number". A message states the rule, which is
//! public, and never the value, which may be anything.

use jsonschema::{
    JsonType, ValidationError,
    error::{TypeKind, ValidationErrorKind as Kind},
    paths::{Location, LocationSegment},
};
use serde::de::IgnoredAny;
use serde_json::Value;

use crate::{
    ParameterErrors, expected,
    text::{LONGEST_NAME, clipped, closest, counted, has_count, joined, text_of},
    vocabulary::{Holds, holds},
};

/// The maximum number of messages: more would not help, and could make the response too large to
/// send.
const MAX_MESSAGES: usize = 100;

pub(super) const NO_FORM: &str = "Must be one of the forms that the tool's definition describes";

/// The messages for the errors in a value, by their paths, such as `items[2].sku`; the path of the
/// value as a whole is empty.
pub(super) struct MessageCollector<'a> {
    pub(super) schema: &'a Value,
    pub(super) value: &'a Value,
    pub(super) messages: ParameterErrors,
}

impl MessageCollector<'_> {
    pub(super) fn add(&mut self, error: &ValidationError<'_>) {
        let path = path_of(error.instance_path());
        match error.kind() {
            Kind::Required { property } => {
                let name = property.as_str().unwrap_or_default();
                self.put(joined(&path, name), "Is required".into());
            }
            Kind::AdditionalProperties { unexpected } => {
                let known = known_properties(error.schema_path(), self.schema);
                self.add_unknown(&path, unexpected.iter().map(String::as_str), &known);
            }
            Kind::UnevaluatedProperties { unexpected } => {
                // If no branch matches, nothing in the branches counts as evaluated; a property
                // that one of them defines is not the error.
                let known = known_properties(error.schema_path(), self.schema);
                let unknown = unexpected.iter().map(String::as_str);
                let unknown = unknown.filter(|name| !known.contains(name));
                self.add_unknown(&path, unknown, &known);
            }
            // If a schema allows no properties at all, the error is about the object as a whole.
            Kind::FalseSchema if rejects_properties(error) => {
                let place = self.value.pointer(error.instance_path().as_str());
                let properties = place.and_then(Value::as_object).into_iter().flatten();
                self.add_unknown(&path, properties.map(|(name, _)| name.as_str()), &[]);
            }
            Kind::AnyOf { context } | Kind::OneOfNotValid { context } => {
                self.add_closest_branch(&path, context);
            }
            kind @ Kind::Type { .. } => {
                let sent = text_sent(error.instance());
                self.put(path, format!("{}{sent}", kind_message(kind)));
            }
            kind => self.put(path, kind_message(kind)),
        }
    }

    fn add_unknown<'a>(
        &mut self,
        path: &str,
        names: impl Iterator<Item = &'a str>,
        known: &[&str],
    ) {
        // One more than the limit makes `put` report that there are more.
        for name in names.take(MAX_MESSAGES + 1) {
            let message = unknown_message(name, known, path.is_empty());
            self.put(joined(path, name), message);
        }
    }

    pub(super) fn put(&mut self, path: String, message: String) {
        let is_full = self.messages.len() >= MAX_MESSAGES;
        match self.messages.get_mut(&path) {
            None if is_full => {
                let more = "More parameters are invalid";
                self.messages.insert("…".into(), more.into());
            }
            None => {
                self.messages.insert(path, message);
            }
            Some(existing) if existing.contains(&message) => {}
            Some(existing) => {
                existing.push_str("; ");
                existing.push_str(&message);
            }
        }
    }
}

/// Returns the message for a value whose errors are not known in detail.
pub(super) fn of_whole(schema: &Value) -> String {
    let text = if schema.get("oneOf").or(schema.get("anyOf")).is_some() {
        NO_FORM
    } else {
        "Does not satisfy the tool's definition"
    };
    text.to_owned()
}

/// Returns true if the error is about a keyword for unknown properties, and not about a property
/// that has the keyword's name.
fn rejects_properties(error: &ValidationError<'_>) -> bool {
    let (mut keyword, mut is_name) = ("", false);
    for segment in error.schema_path().as_str().split('/').skip(1) {
        keyword = if is_name { "" } else { segment };
        is_name = holds(keyword) == Holds::Named;
    }
    matches!(keyword, "additionalProperties" | "unevaluatedProperties")
}

fn kind_message(kind: &Kind) -> String {
    match kind {
        Kind::Type { kind } => format!("Must be {}", types_of(kind).join(" or ")),
        Kind::Enum { options } => {
            let options = options.as_array().into_iter().flatten();
            let options: Vec<_> = options.map(text_of).collect();
            format!("Must be one of: {}", options.join(", "))
        }
        Kind::Constant { expected_value } => format!("Must be {}", text_of(expected_value)),
        Kind::Minimum { limit } => format!("Must be at least {limit}"),
        Kind::Maximum { limit } => format!("Must be at most {limit}"),
        Kind::ExclusiveMinimum { limit } => format!("Must be greater than {limit}"),
        Kind::ExclusiveMaximum { limit } => format!("Must be less than {limit}"),
        Kind::MultipleOf { multiple_of } => format!("Must be a multiple of {multiple_of}"),
        Kind::MinLength { limit: 1 } | Kind::MinItems { limit: 1 } => "Must not be empty".into(),
        Kind::MinLength { limit } => format!("Must be at least {} long", characters(*limit)),
        Kind::MaxLength { limit } => format!("Must be at most {} long", characters(*limit)),
        Kind::MinItems { limit } => has_count("at least", limit, "item", "items"),
        Kind::MaxItems { limit } => has_count("at most", limit, "item", "items"),
        Kind::AdditionalItems { limit } => has_count("at most", limit, "item", "items"),
        Kind::MinProperties { limit } => has_count("at least", limit, "property", "properties"),
        Kind::MaxProperties { limit } => has_count("at most", limit, "property", "properties"),
        Kind::UniqueItems => "Must not contain the same item twice".into(),
        Kind::Pattern { pattern } => format!("Must match the pattern {pattern}"),
        Kind::Format { format } => expected::of_format(format),
        Kind::ContentEncoding { content_encoding } => expected::of_encoding(content_encoding),
        Kind::PropertyNames { error } => {
            format!(
                "Has an invalid property name: {}",
                kind_message(error.kind())
            )
        }
        Kind::OneOfMultipleValid { .. } => {
            "Must be exactly one of the forms that the tool's definition describes".into()
        }
        Kind::FalseSchema | Kind::Not { .. } => "Is not allowed".into(),
        _ => format!(
            "Does not satisfy '{}' of the tool's definition",
            kind.keyword()
        ),
    }
}

/// Returns what a text contains that was sent in place of another value: models write lists and
/// numbers as texts, and would repeat it.
pub(super) fn text_sent(value: &Value) -> String {
    let text = value.as_str().map_or("", str::trim_start);
    let content = match text.bytes().next() {
        _ if serde_json::from_str::<IgnoredAny>(text).is_err() => return String::new(),
        Some(b'[') => "an array",
        Some(b'{') => "an object",
        Some(b't' | b'f') => "a boolean",
        Some(b'n') => "null",
        Some(b'"') => return String::new(),
        _ => "a number",
    };
    format!("; a text that contains {content} was sent")
}

fn characters(count: u64) -> String {
    counted(count, "character", "characters")
}

pub(super) fn types_of(kind: &TypeKind) -> Vec<&'static str> {
    let with_article = |name: JsonType| match name {
        JsonType::Array => "an array",
        JsonType::Boolean => "a boolean",
        JsonType::Integer => "an integer",
        JsonType::Null => "null",
        JsonType::Number => "a number",
        JsonType::Object => "an object",
        JsonType::String => "a string",
    };
    match kind {
        TypeKind::Single(name) => vec![with_article(*name)],
        TypeKind::Multiple(names) => names.iter().map(with_article).collect(),
    }
}

fn unknown_message(name: &str, known: &[&str], is_parameter: bool) -> String {
    let (problem, no_others, others) = if is_parameter {
        (
            "Is not a parameter of this tool",
            "it takes none",
            "it takes",
        )
    } else {
        (
            "Is not a known property",
            "no properties are allowed",
            "the known properties are",
        )
    };
    let name = clipped(name, LONGEST_NAME);
    match closest(&name, known.iter().copied()) {
        Some(known) => format!("{problem}; did you mean '{known}'?"),
        None if known.is_empty() => format!("{problem}; {no_others}"),
        None if known.len() <= 8 => format!("{problem}; {others} {}", known.join(", ")),
        None => problem.into(),
    }
}

/// Returns the properties defined by the schema that rejected the others: those next to the
/// keyword, and those in the branches of the same object.
fn known_properties<'a>(keyword: &Location, schema: &'a Value) -> Vec<&'a str> {
    let parent = keyword.as_str().rsplit_once('/');
    let place = schema.pointer(parent.map_or("", |(parent, _)| parent));
    let mut names = place.map(expected::declared_properties).unwrap_or_default();
    names.sort_unstable();
    names.dedup();
    names
}

pub(super) fn path_of(location: &Location) -> String {
    let mut path = String::new();
    for segment in location {
        match segment {
            LocationSegment::Index(index) => path = format!("{path}[{index}]"),
            LocationSegment::Property(name) => path = joined(&path, &name),
        }
    }
    path
}
