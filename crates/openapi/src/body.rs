//! The body of an operation as properties of an input.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use crate::{
    document::Document,
    operation::Operation,
    parameters::encoding_named,
    plan::{BodyPlan, Encoding, Place, Shape},
    schema::{Converter, Object, list},
    text::plain,
};

/// A body before its properties have their places in the input.
pub(crate) struct Body {
    pub(crate) plan: BodyPlan,
    /// The properties, by the names of the fields, or `body` alone.
    pub(crate) properties: Object,
    pub(crate) required: Vec<String>,
    /// Sentences to add to the tool's description.
    pub(crate) note: Option<String>,
}

/// The kind of a media type, the most useful first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Json,
    OtherJson,
    Form,
    Multipart,
    Text,
    Bytes,
}

impl Body {
    /// Returns the body of an operation, if it has one.
    pub(crate) fn of<'a>(
        operation: &Operation<'a>,
        document: &'a Document,
        converter: &mut Converter<'a>,
    ) -> Result<Option<Self>, String> {
        let Some(body) = operation.object.get("requestBody") else {
            return Ok(None);
        };
        let body = document.resolve(body).and_then(Value::as_object);
        let body = body.ok_or("its body is a reference that leads nowhere")?;
        let content = body.get("content").and_then(Value::as_object);
        let best = content
            .into_iter()
            .flatten()
            .min_by_key(|(name, _)| kind_of(name));
        let Some((media_type, media)) = best else {
            return Ok(None);
        };
        let kind = kind_of(media_type);
        let empty = &Value::Null;
        let schema = media.get("schema").unwrap_or(empty);
        converter.has_file_parts = kind == Kind::Multipart;
        let fields = match kind {
            Kind::Text | Kind::Bytes => Object::new(),
            _ => converter.convert(schema, 0),
        };
        converter.has_file_parts = false;
        let plan = BodyPlan {
            media_type: concrete(media_type, kind),
            shape: Shape::Whole,
            required: body.get("required") == Some(&Value::Bool(true)),
            envelope: None,
            names: BTreeMap::new(),
            files: files_in(&fields, kind),
            encodings: encodings_in(media, kind),
            fixed: Map::new(),
        };
        let text = body
            .get("description")
            .and_then(Value::as_str)
            .unwrap_or_default();
        Ok(Some(match kind {
            Kind::Text => Self::raw(plan, Shape::Text, "The text of the request."),
            Kind::Bytes => Self::raw(plan, Shape::Base64, "The content of the request in base64."),
            _ => Self::flat(plan, fields, text),
        }))
    }

    fn raw(mut plan: BodyPlan, shape: Shape, text: &str) -> Self {
        plan.shape = shape;
        let schema = [("type", "string"), ("description", text)];
        let schema = schema.map(|(keyword, value)| (keyword.to_owned(), value.into()));
        Self::whole(plan, Object::from_iter(schema), "")
    }

    fn whole(plan: BodyPlan, mut schema: Object, text: &str) -> Self {
        let text = plain(text);
        if !schema.contains_key("description") && !text.is_empty() {
            schema.insert("description".into(), text.into());
        }
        schema
            .entry("description")
            .or_insert_with(|| "The body of the request.".into());
        let required = plan
            .required
            .then(|| "body".to_owned())
            .into_iter()
            .collect();
        let properties = Object::from_iter([("body".to_owned(), schema.into())]);
        Self {
            plan,
            properties,
            required,
            note: None,
        }
    }

    /// Makes the fields of an object, also of one in an envelope, properties of the input.
    fn flat(mut plan: BodyPlan, schema: Object, text: &str) -> Self {
        let Some((schema, note)) = flattened(&schema, plan.required) else {
            return Self::whole(plan, schema, text);
        };
        let (envelope, schema, note) = match opened(&schema) {
            Some((name, inner, inner_note)) if plan.files.is_empty() => {
                (Some(name), inner, inner_note)
            }
            _ => (None, schema, note),
        };
        plan.shape = Shape::Fields;
        plan.envelope = envelope;
        let required = list(&schema, "required").filter_map(Value::as_str);
        let required = required.map(str::to_owned).collect();
        let properties = match schema.get("properties") {
            Some(Value::Object(properties)) => properties.clone(),
            _ => Object::new(),
        };
        Self {
            plan,
            properties,
            required,
            note,
        }
    }
}

/// Returns an object whose properties say all about it, with what is left to say in words. A body
/// that may be left out must not have required properties: they would be required of each call.
fn flattened(schema: &Object, is_required: bool) -> Option<(Object, Option<String>)> {
    let has_properties = schema
        .get("properties")
        .is_some_and(|it| it.as_object().is_some_and(|it| !it.is_empty()));
    let is_object = schema.get("type").is_none_or(|it| it == "object");
    let has_others = schema
        .get("additionalProperties")
        .is_some_and(Value::is_object);
    let is_optional = !is_required && list(schema, "required").next().is_some();
    let note = match schema.get("anyOf") {
        None => None,
        Some(branches) => Some(required_sets(branches)?),
    };
    (has_properties && is_object && !has_others && !is_optional).then(|| (schema.clone(), note))
}

/// Describes branches that have only lists of required properties.
fn required_sets(branches: &Value) -> Option<String> {
    let only_required = |branch: &Value| {
        let object = branch.as_object()?;
        let names = list(object, "required").filter_map(Value::as_str);
        let names = names.collect::<Vec<_>>().join(" and ");
        let is_alone = object
            .keys()
            .all(|it| matches!(&**it, "required" | "type" | "description"));
        (is_alone && !names.is_empty()).then_some(names)
    };
    let sets: Option<Vec<String>> = branches.as_array()?.iter().map(only_required).collect();
    Some(format!(
        "At least one is required: {}.",
        sets?.join(", or ")
    ))
}

/// Returns the name and the object in an envelope, an object with one property that is required.
fn opened(schema: &Object) -> Option<(String, Object, Option<String>)> {
    let properties = schema.get("properties")?.as_object()?;
    let mut all = properties.iter();
    let ((name, inner), None) = (all.next()?, all.next()) else {
        return None;
    };
    let is_required = list(schema, "required").any(|it| it == name);
    let (inner, note) = flattened(inner.as_object()?, is_required)?;
    Some((name.clone(), inner, note))
}

fn kind_of(media_type: &str) -> Kind {
    let essence = media_type.split(';').next().unwrap_or_default().trim();
    let essence = essence.to_ascii_lowercase();
    match &*essence {
        "application/json" | "*/*" => Kind::Json,
        "application/x-www-form-urlencoded" => Kind::Form,
        it if it.starts_with("multipart/") => Kind::Multipart,
        it if is_json(it) => Kind::OtherJson,
        it if it.starts_with("text/") => Kind::Text,
        it if it.ends_with("/xml") || it.ends_with("+xml") => Kind::Text,
        _ => Kind::Bytes,
    }
}

/// Returns true for JSON, in any of its media types.
pub(crate) fn is_json(essence: &str) -> bool {
    essence.ends_with("/json") || essence.ends_with("+json")
}

/// Returns the media type of a request.
fn concrete(media_type: &str, kind: Kind) -> String {
    match kind {
        Kind::Json => "application/json".to_owned(),
        Kind::Bytes if media_type.contains('*') => "application/octet-stream".to_owned(),
        Kind::Text if media_type.contains('*') => "text/plain".to_owned(),
        _ => media_type.to_owned(),
    }
}

/// Returns the fields of a multipart body that are files, or lists of files.
fn files_in(schema: &Object, kind: Kind) -> BTreeSet<String> {
    let properties = schema.get("properties").and_then(Value::as_object);
    let is_file = |schema: &Value| !schema["properties"]["base64"].is_null();
    let is_file = |schema: &Value| is_file(schema) || is_file(&schema["items"]);
    let files = properties
        .into_iter()
        .flatten()
        .filter(|(_, it)| is_file(it));
    match kind {
        Kind::Multipart => files.map(|(name, _)| name.clone()).collect(),
        _ => BTreeSet::new(),
    }
}

/// Returns the encodings of the fields of a form that are not the usual one: OpenAPI 3.1, Encoding
/// Object.
fn encodings_in(media: &Value, kind: Kind) -> BTreeMap<String, Encoding> {
    let fields = media["encoding"].as_object().filter(|_| kind == Kind::Form);
    let encodings = fields.into_iter().flatten().filter_map(|(name, it)| {
        let encoding = encoding_named(it["style"].as_str(), it["explode"].as_bool(), Place::Query)?;
        (encoding != Encoding::Usual).then(|| (name.clone(), encoding))
    });
    encodings.collect()
}
