//! What is wrong with a parameter, in words that a person or a model can act on.
//!
//! The specification's voice: "Must be a number". A message states the rule, which is public, and
//! never the value, which may be anything.

use jsonschema::{
    JsonType, ValidationError, Validator,
    error::{TypeKind, ValidationErrorKind as Kind},
    paths::{Location, LocationSegment},
};
use serde_json::Value;

use super::{
    ParameterErrors, explain,
    part::{LONGEST_NAME, MessageSink, SchemaPart, joined},
};
use crate::text::clipped;

/// More bad parameters than this say nothing more, and could make the answer too large to send.
const MOST: usize = 100;

/// The messages of all errors of `instance` under `schema`, by parameter; what is wrong with the
/// instance as a whole is under the name `root`.
pub(super) fn of_all(
    validator: &Validator,
    schema: &Value,
    instance: &Value,
    root: &str,
) -> ParameterErrors {
    let mut collected = MessageCollector::default();
    explain::explain(validator, schema, instance, &mut collected);
    let mut found = collected.found;
    if let Some(message) = found.remove("") {
        found.insert(root.into(), message);
    }
    found
}

/// The messages until there are enough.
#[derive(Default)]
struct MessageCollector {
    found: ParameterErrors,
    is_full: bool,
}

impl MessageSink for MessageCollector {
    fn error(&mut self, part: SchemaPart<'_>, error: &ValidationError<'_>) {
        let mut messages = PartMessages {
            part,
            collected: self,
        };
        messages.add(error);
    }

    fn whole(&mut self, part: SchemaPart<'_>) {
        let has = |keyword| part.schema.get(keyword).is_some();
        let message = if has("oneOf") || has("anyOf") {
            "Must be one of the forms that the tool's definition describes"
        } else {
            "Does not satisfy the tool's definition"
        };
        self.put(part.path.to_owned(), message.into());
    }

    fn has_any(&self) -> bool {
        !self.found.is_empty()
    }

    fn is_full(&self) -> bool {
        self.is_full
    }
}

impl MessageCollector {
    fn put(&mut self, path: String, message: String) {
        let is_full = self.found.len() >= MOST;
        match self.found.get_mut(&path) {
            None if is_full => {
                self.is_full = true;
                let more = "More parameters are invalid";
                self.found.insert("…".into(), more.into());
            }
            None => {
                self.found.insert(path, message);
            }
            Some(known) if known.contains(&message) => {}
            Some(known) => {
                known.push_str("; ");
                known.push_str(&message);
            }
        }
    }
}

/// The messages of one part. Paths are those in the part until they are put down.
pub(super) struct PartMessages<'a> {
    part: SchemaPart<'a>,
    collected: &'a mut MessageCollector,
}

impl PartMessages<'_> {
    pub(super) fn add(&mut self, error: &ValidationError<'_>) {
        let path = path_of(error.instance_path());
        match error.kind() {
            Kind::Required { property } => {
                let name = property.as_str().unwrap_or_default();
                self.put(joined(&path, name), "Is required".into());
            }
            Kind::AdditionalProperties { unexpected } => {
                let known = known_properties(error.schema_path(), self.part.schema);
                self.add_unknown(&path, unexpected.iter().map(String::as_str), &known);
            }
            Kind::UnevaluatedProperties { unexpected } => {
                // Where no form fits, nothing in the forms counts as evaluated; a property that
                // one of them knows is not what is wrong.
                let known = known_properties(error.schema_path(), self.part.schema);
                let unknown = unexpected.iter().map(String::as_str);
                let unknown = unknown.filter(|name| !known.contains(name));
                self.add_unknown(&path, unknown, &known);
            }
            // An object that takes no properties at all is refused as a whole.
            Kind::FalseSchema if refuses_properties(error) => {
                let place = self.part.value.pointer(error.instance_path().as_str());
                let properties = place.and_then(Value::as_object).into_iter().flatten();
                self.add_unknown(&path, properties.map(|(name, _)| name.as_str()), &[]);
            }
            Kind::AnyOf { context } | Kind::OneOfNotValid { context } => {
                self.add_closest_form(&path, context);
            }
            kind => self.put(path, of_kind(kind)),
        }
    }

    fn add_unknown<'a>(
        &mut self,
        path: &str,
        names: impl Iterator<Item = &'a str>,
        known: &[&str],
    ) {
        // One more than there is room for tells that there are more.
        for name in names.take(MOST + 1) {
            let is_parameter = path.is_empty() && self.part.path.is_empty();
            let message = unknown(name, known, is_parameter);
            self.put(joined(path, name), message);
        }
    }

    pub(super) fn put(&mut self, path: String, message: String) {
        let base = self.part.path;
        let path = match (base.is_empty(), path.is_empty()) {
            (true, _) => path,
            (false, true) => base.to_owned(),
            (false, false) if path.starts_with('[') => format!("{base}{path}"),
            (false, false) => format!("{base}.{path}"),
        };
        self.collected.put(path, message);
    }
}

fn refuses_properties(error: &ValidationError<'_>) -> bool {
    let keyword = error.schema_path().as_str().rsplit('/').next();
    matches!(
        keyword,
        Some("additionalProperties" | "unevaluatedProperties")
    )
}

fn of_kind(kind: &Kind) -> String {
    match kind {
        Kind::Type { kind } => format!("Must be {}", types_of(kind).join(" or ")),
        Kind::Enum { options } => {
            let options: Vec<_> = options
                .as_array()
                .into_iter()
                .flatten()
                .map(plain)
                .collect();
            format!("Must be one of: {}", options.join(", "))
        }
        Kind::Constant { expected_value } => format!("Must be {}", plain(expected_value)),
        Kind::Minimum { limit } => format!("Must be at least {limit}"),
        Kind::Maximum { limit } => format!("Must be at most {limit}"),
        Kind::ExclusiveMinimum { limit } => format!("Must be greater than {limit}"),
        Kind::ExclusiveMaximum { limit } => format!("Must be less than {limit}"),
        Kind::MultipleOf { multiple_of } => format!("Must be a multiple of {multiple_of}"),
        Kind::MinLength { limit: 1 } | Kind::MinItems { limit: 1 } => "Must not be empty".into(),
        Kind::MinLength { limit } => format!("Must be at least {limit} characters long"),
        Kind::MaxLength { limit } => format!("Must be at most {limit} characters long"),
        Kind::MinItems { limit } => format!("Must have at least {limit} items"),
        Kind::MaxItems { limit } => format!("Must have at most {limit} items"),
        Kind::AdditionalItems { limit } => format!("Must have at most {limit} items"),
        Kind::MinProperties { limit } => format!("Must have at least {limit} properties"),
        Kind::MaxProperties { limit } => format!("Must have at most {limit} properties"),
        Kind::UniqueItems => "Must not have the same item twice".into(),
        Kind::Pattern { pattern } => format!("Must match the pattern {pattern}"),
        Kind::Format { format } => format!("Must be a valid {format}"),
        Kind::PropertyNames { error } => {
            format!("Has a wrong name in it: {}", of_kind(error.kind()))
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

fn unknown(name: &str, known: &[&str], is_parameter: bool) -> String {
    let what = if is_parameter {
        "Is not a parameter of this tool"
    } else {
        "Is not a known property"
    };
    let name = clipped(name, LONGEST_NAME);
    let likeness = |known: &&&str| strsim::normalized_damerau_levenshtein(&name, known);
    let closest = known
        .iter()
        .map(|known| (likeness(&known), known))
        .filter(|(likeness, _)| *likeness >= 0.5)
        .max_by(|(a, _), (b, _)| a.total_cmp(b));
    match closest {
        Some((_, known)) => format!("{what}; did you mean '{known}'?"),
        None if known.is_empty() => format!("{what}; it takes none"),
        None if known.len() <= 8 => format!("{what}; it takes {}", known.join(", ")),
        None => what.into(),
    }
}

/// The properties that the schema knows which refused the others: those beside the keyword, and
/// those of the forms of the same object.
fn known_properties<'a>(refused_by: &Location, schema: &'a Value) -> Vec<&'a str> {
    let parent = refused_by.as_str().rsplit_once('/');
    let place = schema.pointer(parent.map_or("", |(parent, _)| parent));
    let mut names = Vec::new();
    let mut open: Vec<_> = place.into_iter().collect();
    while let Some(place) = open.pop() {
        let properties = place.get("properties").and_then(Value::as_object);
        names.extend(
            properties
                .into_iter()
                .flatten()
                .map(|(name, _)| name.as_str()),
        );
        for keyword in ["allOf", "anyOf", "oneOf"] {
            let forms = place.get(keyword).and_then(Value::as_array);
            open.extend(forms.into_iter().flatten());
        }
    }
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

pub(super) fn plain(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}
