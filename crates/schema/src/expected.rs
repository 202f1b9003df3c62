//! The formats of texts that schemas name with `format` and `contentEncoding`.
//!
//! A validator knows only some of them, and fewer in older drafts; a type knows its own. Whichever
//! rejects a value, the message is the same.

use serde_json::{Map, Value};
use serde_path_to_error::{Path, Segment};

use crate::vocabulary::{BRANCHES, list_in};

/// Returns the message for a value at `path` that is not of the format that the schema names, if it
/// names one.
pub(crate) fn expected_format(schema: &Value, path: &Path) -> Option<String> {
    let text = |place: &Value, keyword: &str| Some(place.get(keyword)?.as_str()?.to_owned());
    places_at(schema, path).into_iter().find_map(|place| {
        let format = text(place, "format").map(|it| of_format(&it));
        format.or_else(|| text(place, "contentEncoding").map(|it| of_encoding(&it)))
    })
}

/// Returns the names of an object's properties, in all branches that its schema allows.
pub fn declared_properties(schema: &Value) -> Vec<&str> {
    properties_in(with_branches(vec![schema]))
}

/// Does the same for the object at `path`. Returns none if the value there is not an object.
pub(crate) fn declared_properties_at<'a>(schema: &'a Value, path: &Path) -> Vec<&'a str> {
    properties_in(places_at(schema, path))
}

fn properties_in(branches: Vec<&Value>) -> Vec<&str> {
    let branches = branches.into_iter();
    let objects = branches.filter_map(|branch| branch.get("properties")?.as_object());
    objects.flat_map(Map::keys).map(String::as_str).collect()
}

/// Returns the schemas for the value at `path`.
fn places_at<'a>(schema: &'a Value, path: &Path) -> Vec<&'a Value> {
    let mut places = with_branches(vec![schema]);
    for segment in path {
        let inner = places.iter().filter_map(|place| inner_of(place, segment));
        places = with_branches(inner.collect());
    }
    places
}

/// Returns the schemas, and the schemas for the same value within them.
fn with_branches(mut schemas: Vec<&Value>) -> Vec<&Value> {
    let mut at = 0;
    while let Some(schema) = schemas.get(at).copied() {
        schemas.extend(BRANCHES.iter().flat_map(|it| list_in(schema.get(it))));
        at += 1;
    }
    schemas
}

/// Returns the schemas of a part of the value.
fn inner_of<'a>(schema: &'a Value, segment: &Segment) -> Option<&'a Value> {
    match segment {
        Segment::Seq { index } => items_at(schema, *index),
        Segment::Map { key } | Segment::Enum { variant: key } => {
            let any_variant = matches!(segment, Segment::Enum { .. }).then_some(schema);
            property_of(schema, key).or(any_variant)
        }
        Segment::Unknown => None,
    }
}

/// Returns the schema of an item. `items` could be a list before draft 2020-12.
pub(super) fn items_at(schema: &Value, index: usize) -> Option<&Value> {
    let prefix = list_in(schema.get("prefixItems")).get(index);
    prefix.or_else(|| match schema.get("items")? {
        Value::Array(list) => list.get(index),
        one => Some(one),
    })
}

/// Returns the schema of a property, declared or not.
pub(super) fn property_of<'a>(schema: &'a Value, name: &str) -> Option<&'a Value> {
    let properties = schema.get("properties").and_then(|it| it.get(name));
    properties.or_else(|| schema.get("additionalProperties"))
}

/// Returns the message for a value that does not have this `format`.
pub(super) fn of_format(format: &str) -> String {
    let example = match format {
        "byte" => return of_encoding("base64"),
        "partial-date-time" => {
            return "Must be a date and time without an offset, such as 2023-10-05T12:00:00".into();
        }
        "partial-time" => return "Must be a time without an offset, such as 12:00:00".into(),
        "zoned-date-time" => {
            return "Must be a date and time with a time zone, such as \
                    2023-10-05T12:00:00-04:00[America/New_York]"
                .into();
        }
        "date" => "2023-10-05",
        "date-time" => "2023-10-05T12:00:00Z",
        "duration" => "PT1H30M",
        "time" => "12:00:00Z",
        "uri" => "https://example.com/page",
        "uuid" => "123e4567-e89b-12d3-a456-426614174000",
        _ => return format!("Must be a valid {format}"),
    };
    format!("Must be a valid {format}, such as {example}")
}

/// Returns the message for a value that does not have this `contentEncoding`.
pub(super) fn of_encoding(encoding: &str) -> String {
    format!("Must be encoded in {encoding}")
}
