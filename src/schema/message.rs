//! What is wrong with a parameter, in words that a person or a model can act on.
//!
//! The specification's voice: "Must be a number". A message states the rule, which is public, and
//! never the value, which may be anything.

use jsonschema::{
    JsonType, ValidationError,
    error::{TypeKind, ValidationErrorKind as Kind},
    paths::{Location, LocationSegment},
};
use serde_json::Value;

use super::ParameterErrors;

/// More bad parameters than this say nothing more, and could make the answer too large to send.
const MOST: usize = 100;
/// Names come from the caller and may be of any length.
const LONGEST_NAME: usize = 64;

/// The messages of all errors of `instance` under `schema`, by parameter; what is wrong with the
/// instance as a whole is under the name `root`.
pub(super) fn of_all<'a>(
    errors: impl Iterator<Item = ValidationError<'a>>,
    schema: &Value,
    instance: &Value,
    root: &str,
) -> ParameterErrors {
    let mut messages = Messages {
        schema,
        instance,
        found: ParameterErrors::new(),
    };
    for error in errors {
        messages.add(&error);
        if messages.found.len() >= MOST {
            messages.put("…".into(), "More parameters are invalid".into());
            break;
        }
    }
    let mut found = messages.found;
    if let Some(message) = found.remove("") {
        found.insert(root.into(), message);
    }
    found
}

struct Messages<'a> {
    schema: &'a Value,
    instance: &'a Value,
    found: ParameterErrors,
}

impl Messages<'_> {
    fn add(&mut self, error: &ValidationError<'_>) {
        let path = path_of(error.instance_path());
        match error.kind() {
            Kind::Required { property } => {
                let name = property.as_str().unwrap_or_default();
                self.put(joined(&path, name), "Is required".into());
            }
            Kind::AdditionalProperties { unexpected }
            | Kind::UnevaluatedProperties { unexpected } => {
                let known = known_properties(error.schema_path(), self.schema);
                for name in unexpected {
                    let message = unknown(name, &known, path.is_empty());
                    self.put(joined(&path, name), message);
                }
            }
            // An object that takes no properties at all is refused as a whole.
            Kind::FalseSchema if refuses_properties(error) => {
                let place = self.instance.pointer(error.instance_path().as_str());
                let properties = place.and_then(Value::as_object).into_iter().flatten();
                for (name, _) in properties.take(MOST) {
                    let message = unknown(name, &[], path.is_empty());
                    self.put(joined(&path, name), message);
                }
            }
            Kind::AnyOf { context } | Kind::OneOfNotValid { context } => {
                self.add_closest_form(&path, context);
            }
            kind => self.put(path, of_kind(kind)),
        }
    }

    fn put(&mut self, path: String, message: String) {
        match self.found.get_mut(&path) {
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

    /// What keeps a value from the form it most resembles. Without one, the forms are named.
    fn add_closest_form(&mut self, path: &str, forms: &[Vec<ValidationError<'static>>]) {
        let wrong_tag = |error: &ValidationError<'_>| {
            matches!(error.kind(), Kind::Constant { .. } | Kind::Enum { .. })
        };
        let wrong_type = |error: &ValidationError<'_>| {
            matches!(error.kind(), Kind::Type { .. }) && path_of(error.instance_path()) == path
        };
        let mut alike = forms.iter().filter(|errors| {
            !errors
                .iter()
                .any(|error| wrong_tag(error) || wrong_type(error))
        });
        if let (Some(only), None) = (alike.next(), alike.next()) {
            return only.iter().for_each(|error| self.add(error));
        }
        if let Some((at, values)) = tag_values(forms) {
            return self.put(at, format!("Must be one of: {}", values.join(", ")));
        }
        let only_type = |errors: &Vec<ValidationError<'_>>| match errors.as_slice() {
            [error] if wrong_type(error) => match error.kind() {
                Kind::Type { kind } => Some(types_of(kind)),
                _ => None,
            },
            _ => None,
        };
        let types: Option<Vec<_>> = forms.iter().map(only_type).collect();
        let message = match types.map(|types| types.concat()) {
            Some(mut types) => {
                types.dedup();
                format!("Must be {}", types.join(" or "))
            }
            None => "Must be one of the forms that the tool's definition describes".into(),
        };
        self.put(path.to_owned(), message);
    }
}

fn refuses_properties(error: &ValidationError<'_>) -> bool {
    let keyword = error.schema_path().as_str().rsplit('/').next();
    matches!(
        keyword,
        Some("additionalProperties" | "unevaluatedProperties")
    )
}

/// The constants that the forms want, where all of them want one in the same place.
fn tag_values(forms: &[Vec<ValidationError<'static>>]) -> Option<(String, Vec<String>)> {
    let mut place = None;
    let mut values = Vec::new();
    for errors in forms {
        let tag = errors.iter().find_map(|error| match error.kind() {
            Kind::Constant { expected_value } => {
                Some((path_of(error.instance_path()), vec![plain(expected_value)]))
            }
            Kind::Enum { options } => {
                let options = options.as_array()?.iter().map(plain).collect();
                Some((path_of(error.instance_path()), options))
            }
            _ => None,
        });
        let (at, mut wanted) = tag?;
        if place.get_or_insert_with(|| at.clone()) != &at {
            return None;
        }
        values.append(&mut wanted);
    }
    place.map(|at| (at, values))
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

fn types_of(kind: &TypeKind) -> Vec<&'static str> {
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
    let name = clipped(name);
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

/// The properties beside the keyword that refused the others.
fn known_properties<'a>(refused_by: &Location, schema: &'a Value) -> Vec<&'a str> {
    let parent = refused_by
        .as_str()
        .rsplit_once('/')
        .map_or("", |(parent, _)| parent);
    let properties = schema
        .pointer(parent)
        .and_then(|place| place.get("properties"));
    let names = properties.and_then(Value::as_object).into_iter().flatten();
    names.map(|(name, _)| name.as_str()).collect()
}

fn path_of(location: &Location) -> String {
    let mut path = String::new();
    for segment in location {
        match segment {
            LocationSegment::Index(index) => path = format!("{path}[{index}]"),
            LocationSegment::Property(name) => path = joined(&path, &name),
        }
    }
    path
}

fn joined(path: &str, name: &str) -> String {
    let name = clipped(name);
    if path.is_empty() {
        name
    } else {
        format!("{path}.{name}")
    }
}

fn clipped(name: &str) -> String {
    if name.chars().count() <= LONGEST_NAME {
        return name.to_owned();
    }
    name.chars().take(LONGEST_NAME).chain(['…']).collect()
}

fn plain(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}
