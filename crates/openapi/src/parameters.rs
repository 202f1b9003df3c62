//! The parameters of an operation as properties of an input.

use lambda_tools_schema::{
    JsonObject,
    inline::{Converter, NOTE, add_missing, describe, such_as},
    text::{plain, sentence},
};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::{
    media_type::{essence_of, is_json},
    names::key_of,
    plan::{Encoding, ParameterPlan, Place},
};

/// The headers that are not parameters: the request or its credentials set them.
const OWN_HEADERS: [&str; 4] = ["accept", "authorization", "content-type", "cookie"];

/// The headers of a connection, which would change how the request is read: RFC 9110, 7.6.1, and
/// RFC 9112.
const CONNECTION_HEADERS: &str =
    "connection content-length host keep-alive te trailer transfer-encoding upgrade";

/// A parameter that something else fills: its place and its name.
pub(crate) type Filled<'a> = (Place, &'a str);

/// A parameter before it has its place in the input.
pub(crate) struct Parameter {
    pub(crate) name: String,
    pub(crate) key: String,
    pub(crate) place: Place,
    pub(crate) encoding: Encoding,
    pub(crate) reserved: bool,
    pub(crate) is_required: bool,
    pub(crate) schema: JsonObject,
}

impl Parameter {
    /// Returns the parameter, or `None` for one that something else fills. An error says why no
    /// request can be made.
    pub(crate) fn of<'a>(
        object: &'a Map<String, Value>,
        filled: &[Filled],
        converter: &mut Converter<'a>,
    ) -> Result<Option<Self>, String> {
        let text = |field: &str| object.get(field)?.as_str();
        let name = text("name").unwrap_or_default().to_owned();
        let place = object.get("in").map(Place::deserialize);
        let Some(Ok(place)) = place else {
            return Err(format!("its parameter {name:?} is in an unknown place"));
        };
        if is_filled(&name, place, filled) {
            return Ok(None);
        }
        if place == Place::Header && is_of_connection(&name) {
            converter.is_cut = true;
            return Ok(None);
        }
        let style = text("style").unwrap_or_default();
        let error = || format!("its parameter {name:?} has the style {style}");
        let encoding = encoding_of(object, place).ok_or_else(error)?;
        let of_content = || content_of(object).next()?.1.get("schema");
        let schema = object.get("schema").or_else(of_content);
        let schema = schema.map(|it| converter.convert(it, 1));
        let mut schema = schema.unwrap_or_default();
        let description = plain(text("description").unwrap_or_default());
        if !description.is_empty() {
            converter.describe_as(&sentence(&description), &mut schema);
        }
        let example = object.get("example").or_else(|| {
            let all = object.get("examples")?.as_object()?;
            all.values().next()?.get("value")
        });
        if let Some(note) = example.and_then(such_as)
            && !schema.contains_key("enum")
            && !schema.contains_key("default")
        {
            let note = JsonObject::from_iter([(NOTE.to_owned(), note.into())]);
            add_missing(&mut schema, note);
        }
        describe(&name, &mut schema);
        let is_required =
            place == Place::Path || object.get("required") == Some(&Value::Bool(true));
        Ok(Some(Self {
            key: key_of(&name),
            name,
            place,
            encoding,
            reserved: object.get("allowReserved") == Some(&Value::Bool(true)),
            is_required,
            schema,
        }))
    }

    /// Returns how the request uses the parameter.
    pub(crate) fn plan(&self, fixed: Option<Value>) -> ParameterPlan {
        let is_fixed = fixed.is_some();
        ParameterPlan {
            key: (!is_fixed).then(|| self.key.clone()),
            name: (is_fixed || self.name != self.key).then(|| self.name.clone()),
            place: self.place,
            encoding: self.encoding,
            reserved: self.reserved,
            fixed,
            schema: Value::Null,
        }
    }
}

/// Returns true for a header that says how a connection is used.
pub(crate) fn is_of_connection(header: &str) -> bool {
    let header = header.trim().to_ascii_lowercase();
    let mut all = CONNECTION_HEADERS.split(' ');
    header.starts_with("proxy-") || all.any(|it| it == header)
}

/// Returns true for a parameter that a credential or the request itself fills.
fn is_filled(name: &str, place: Place, filled: &[Filled]) -> bool {
    if place == Place::Header && OWN_HEADERS.contains(&&*name.to_ascii_lowercase()) {
        return true;
    }
    let is_it = |own: &str| match place {
        Place::Header => own.eq_ignore_ascii_case(name),
        _ => own == name,
    };
    filled.iter().any(|(it, own)| *it == place && is_it(own))
}

/// Returns the encoding of a parameter, if it is one of those that a request can have.
fn encoding_of(parameter: &Map<String, Value>, place: Place) -> Option<Encoding> {
    let mut contents = content_of(parameter).map(|(name, _)| essence_of(name));
    if contents.any(|it| is_json(&it)) {
        return Some(Encoding::Json);
    }
    let style = parameter.get("style").and_then(Value::as_str);
    let explode = parameter.get("explode").and_then(Value::as_bool);
    encoding_named(style, explode, place)
}

/// Returns the media types of a parameter that has content in place of a schema.
fn content_of(parameter: &Map<String, Value>) -> impl Iterator<Item = (&String, &Value)> {
    let content = parameter.get("content").and_then(Value::as_object);
    content.into_iter().flatten()
}

/// Returns the encoding of a style: OpenAPI 3.1, Style Values.
pub(crate) fn encoding_named(
    style: Option<&str>,
    explode: Option<bool>,
    place: Place,
) -> Option<Encoding> {
    let is_repeated = explode.unwrap_or(true);
    match (style, place) {
        (None | Some("form"), Place::Query) if is_repeated => Some(Encoding::Usual),
        // The style of another place has one meaning here.
        (None | Some("form" | "simple"), Place::Query) => Some(Encoding::Comma),
        (Some("spaceDelimited" | "pipeDelimited"), Place::Query) if explode == Some(true) => {
            Some(Encoding::Usual)
        }
        (Some("spaceDelimited"), Place::Query) => Some(Encoding::Space),
        (Some("pipeDelimited"), Place::Query) => Some(Encoding::Pipe),
        (Some("deepObject"), Place::Query) => Some(Encoding::Deep),
        (None | Some("simple" | "form"), Place::Path | Place::Header) if explode == Some(true) => {
            Some(Encoding::Exploded)
        }
        (None | Some("simple" | "form"), Place::Path | Place::Header)
        | (None | Some("form"), Place::Cookie) => Some(Encoding::Usual),
        _ => None,
    }
}
