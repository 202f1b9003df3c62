//! The body of an operation as properties of an input.

use std::collections::{BTreeMap, BTreeSet};

use lambda_tools_schema::{
    JsonObject,
    document::Document,
    inline::{Converter, required_set, take_object},
    is_type,
    text::plain,
    vocabulary::list_in,
};
use serde_json::{Map, Value, json};

use crate::{
    media_type::{essence_of, is_json, is_textual, usual_in},
    operation::Operation,
    parameters::encoding_named,
    plan::{BodyPlan, Encoding, Place, Shape},
};

/// A body before its properties have their places in the input.
#[derive(Default)]
pub(crate) struct Body {
    pub(crate) plan: BodyPlan,
    /// The properties, by the names of the fields, or `body` alone.
    pub(crate) properties: JsonObject,
    pub(crate) required: Vec<String>,
    /// Sets of fields, of which one must be there.
    pub(crate) one_of: Vec<Vec<String>>,
    /// True if there may be further fields.
    pub(crate) is_open: bool,
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
    /// A body that no input can describe: parts that are not fields, as in `multipart/related`, and
    /// objects in a binary format.
    Unsent,
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
        let kinds = content.into_iter().flatten();
        let kinds = kinds.map(|(name, media)| (kind_of(name, media, document), name, media));
        let Some((kind, media_type, media)) = kinds.min_by_key(|(kind, ..)| *kind) else {
            return Ok(None);
        };
        if kind == Kind::Unsent {
            return Err(format!(
                "its body is {media_type}, of which an input cannot say all"
            ));
        }
        let empty = &Value::Null;
        let schema = &media["schema"];
        converter.has_file_parts = kind == Kind::Multipart;
        let is_raw = matches!(kind, Kind::Text | Kind::Bytes);
        let mut fields = converter.convert(schema, is_raw.into());
        converter.has_file_parts = false;
        let mut plan = BodyPlan {
            media_type: concrete(media_type, kind),
            required: body.get("required") == Some(&Value::Bool(true)),
            ..BodyPlan::default()
        };
        match kind {
            Kind::Form => plan.encodings = encodings_in(media),
            Kind::Multipart => {
                plan.files = files_in(&fields);
                plan.media_types = media_types_in(media);
            }
            _ => {}
        }
        let text = body.get("description").and_then(Value::as_str);
        let text = text.unwrap_or_default();
        if !is_raw {
            return Ok(Some(Self::flat(plan, fields, text)));
        }
        let target = document.resolve(schema).unwrap_or(empty);
        let is_encoded = target["format"] == "byte" || target["contentEncoding"] == "base64";
        let (shape, usual) = match kind {
            Kind::Bytes if !is_encoded => (Shape::Base64, "The content of the request in base64."),
            _ => (Shape::Text, "The text of the request."),
        };
        let mut scalars = ["string", "boolean", "integer", "number"].iter();
        let is_scalar = scalars.any(|it| is_type(&fields, it));
        if shape == Shape::Base64 || !is_scalar || target["format"] == "binary" {
            fields.retain(|keyword, _| keyword == "description" && shape == Shape::Text);
            fields.insert("type".into(), "string".into());
            fields.insert("description".into(), usual.into());
        }
        fields.entry("description").or_insert_with(|| usual.into());
        let mut whole = Self::whole(BodyPlan { shape, ..plan }, fields, text);
        if let Some(range) = whole.plan.media_type.strip_suffix("/*") {
            let text = format!("The media type of the body, such as {}.", usual_in(range));
            let schema = json!({"type": "string", "pattern": format!("^{range}/[-.+\\w]+$"), "description": text});
            whole.properties.insert(MEDIA_TYPE.into(), schema);
        }
        Ok(Some(whole))
    }

    fn whole(plan: BodyPlan, mut schema: JsonObject, text: &str) -> Self {
        let text = Some(plain(text)).filter(|it| !it.is_empty());
        let text = || text.unwrap_or_else(|| "The body of the request.".to_owned());
        schema.entry("description").or_insert_with(|| text().into());
        Self {
            required: Vec::from_iter(plan.required.then(|| "body".to_owned())),
            properties: JsonObject::from_iter([("body".to_owned(), schema.into())]),
            plan,
            ..Self::default()
        }
    }

    /// Makes the fields of an object, also of one in an envelope, properties of the input.
    fn flat(mut plan: BodyPlan, schema: JsonObject, text: &str) -> Self {
        let Some((mut schema, mut one_of)) = flattened(&schema, plan.required) else {
            return Self::whole(plan, schema, text);
        };
        if plan.files.is_empty()
            && let Some((name, is_required, inner, sets)) = opened(&schema)
        {
            plan.envelope = Some(name);
            plan.optional_envelope = !is_required;
            (schema, one_of) = (inner, sets);
        }
        plan.shape = Shape::Fields;
        let is_counted = schema.get("minProperties").and_then(Value::as_u64) >= Some(1);
        if is_counted && one_of.is_empty() && !schema.contains_key("required") {
            let properties = schema.get("properties").and_then(Value::as_object);
            let names = properties.into_iter().flat_map(Map::keys);
            one_of = names.map(|name| vec![name.clone()]).collect();
        }
        let required = list_in(schema.get("required"))
            .iter()
            .filter_map(Value::as_str);
        let required = required.map(str::to_owned).collect();
        let is_open = schema.get("additionalProperties") == Some(&Value::Bool(true));
        Self {
            plan,
            properties: take_object(&mut schema, "properties"),
            required,
            one_of,
            is_open,
        }
    }
}

/// Returns an object whose properties say all about it, with sets of which one is required. A body
/// that may be left out must not have required properties: they would be required of each call.
fn flattened(schema: &JsonObject, is_required: bool) -> Option<(JsonObject, Vec<Vec<String>>)> {
    let properties = schema.get("properties").and_then(Value::as_object);
    let has_properties = properties.is_some_and(|it| !it.is_empty());
    let is_object = schema.get("type").is_none_or(|it| it == "object");
    let has_others = schema.get("additionalProperties");
    let has_others = has_others.is_some_and(Value::is_object);
    let is_optional = !is_required && list_in(schema.get("required")).iter().next().is_some();
    let sets = list_in(schema.get("anyOf"))
        .iter()
        .map(required_set)
        .collect();
    (has_properties && is_object && !has_others && !is_optional)
        .then(|| schema.clone())
        .zip::<Vec<_>>(sets)
}

/// Returns the name of an envelope, an object with one property, whether that is required, and the
/// object in it.
fn opened(schema: &JsonObject) -> Option<(String, bool, JsonObject, Vec<Vec<String>>)> {
    let properties = schema.get("properties")?.as_object()?;
    let mut all = properties.iter();
    let ((name, inner), None) = (all.next()?, all.next()) else {
        return None;
    };
    let is_open = schema.get("additionalProperties") == Some(&Value::Bool(true));
    let is_required = list_in(schema.get("required")).iter().any(|it| it == name);
    let (inner, sets) = flattened(inner.as_object().filter(|_| !is_open)?, is_required)?;
    Some((name.clone(), is_required, inner, sets))
}

fn kind_of(media_type: &str, media: &Value, document: &Document) -> Kind {
    let schema = document.resolve(&media["schema"]).unwrap_or(&Value::Null);
    let is_text = is_text(schema, document, 0);
    let structured = ["type", "properties", "items", "allOf", "anyOf", "oneOf"];
    let is_structured = !is_text && structured.iter().any(|it| schema.get(it).is_some());
    match &*essence_of(media_type) {
        "application/json" => Kind::Json,
        "application/x-www-form-urlencoded" => Kind::Form,
        "multipart/form-data" | "multipart/*" => Kind::Multipart,
        it if it.starts_with("multipart/") => Kind::Unsent,
        it if is_json(it) => Kind::OtherJson,
        it if is_textual(it) => Kind::Text,
        "*/*" if !is_text => Kind::Json,
        it if is_structured && BINARY.iter().any(|name| it.ends_with(name)) => Kind::Unsent,
        it if it.starts_with("application/") && is_structured => Kind::OtherJson,
        _ => Kind::Bytes,
    }
}

/// The names of formats that are not text, of whose values no JSON can be made.
const BINARY: [&str; 6] = ["octet-stream", "msgpack", "protobuf", "cbor", "zip", "pdf"];

/// Returns true for a schema of texts or bytes.
fn is_text(schema: &Value, document: &Document, depth: usize) -> bool {
    let schema = document.resolve(schema).unwrap_or(schema);
    let has_type = schema.as_object().is_some_and(|it| is_type(it, "string"));
    let parts = ["allOf", "anyOf", "oneOf"].into_iter();
    let mut parts = parts.filter_map(|it| schema[it].as_array()).flatten();
    has_type || depth < 8 && parts.any(|it| is_text(it, document, depth + 1))
}

/// Returns the media type of a request. A range of bytes stays: the input has the type.
fn concrete(media_type: &str, kind: Kind) -> String {
    let is_range = media_type.contains('*');
    match kind {
        Kind::Json => "application/json".to_owned(),
        Kind::OtherJson if is_range => "application/json".to_owned(),
        Kind::Bytes if media_type.starts_with('*') => "application/octet-stream".to_owned(),
        Kind::Bytes if is_range => essence_of(media_type),
        Kind::Text if is_range => "text/plain".to_owned(),
        Kind::Multipart => "multipart/form-data".to_owned(),
        Kind::Form => essence_of(media_type),
        _ => media_type.to_owned(),
    }
}

/// The property with the media type of a body that may have several.
pub(crate) const MEDIA_TYPE: &str = "content_type";

/// Returns the fields of a multipart body that are files, or lists of files.
fn files_in(schema: &JsonObject) -> BTreeSet<String> {
    let branches = list_in(schema.get("anyOf"))
        .iter()
        .filter_map(|it| it.get("properties"));
    let properties = schema.get("properties").into_iter().chain(branches);
    let properties = properties.filter_map(Value::as_object).flatten();
    let is_file = |schema: &Value| !schema["properties"]["base64"].is_null();
    let files = properties.filter(|(_, it)| is_file(it) || is_file(&it["items"]));
    files.map(|(name, _)| name.clone()).collect()
}

/// Returns the encodings of the fields of a form that are not the usual one: OpenAPI 3.1, Encoding
/// Object.
fn encodings_in(media: &Value) -> BTreeMap<String, Encoding> {
    let fields = media["encoding"].as_object().into_iter().flatten();
    let encodings = fields.filter_map(|(name, it)| {
        let media_type = it["contentType"].as_str().unwrap_or_default();
        if is_json(&essence_of(media_type)) {
            return Some((name.clone(), Encoding::Json));
        }
        let is_said = !it["style"].is_null() || !it["explode"].is_null();
        let encoding = encoding_named(it["style"].as_str(), it["explode"].as_bool(), Place::Query)?;
        is_said.then(|| (name.clone(), encoding))
    });
    encodings.collect()
}

/// Returns the media types of parts that the document names, each a single one.
fn media_types_in(media: &Value) -> BTreeMap<String, String> {
    let parts = media["encoding"].as_object().into_iter().flatten();
    let types = parts.filter_map(|(name, it)| {
        let media_type = it["contentType"].as_str()?;
        let is_single = !media_type.contains(['*', ','])
            && media_type.is_ascii()
            && !media_type.contains(char::is_control);
        is_single.then(|| (name.clone(), media_type.to_owned()))
    });
    types.collect()
}
