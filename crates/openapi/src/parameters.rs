//! The parameters of an operation as properties of an input.

use serde_json::{Map, Value};

use crate::{
    names::key_of,
    plan::{Credential, Encoding, ParameterPlan, Place},
    schema::{Converter, Object, describe},
    text::{plain, sentence},
};

/// The headers that are not parameters: the request or its credentials set them.
const OWN_HEADERS: [&str; 4] = ["accept", "authorization", "content-type", "cookie"];

/// The headers of a connection, which would change how the request is read: RFC 9110, 7.6.1, and
/// RFC 9112.
const CONNECTION_HEADERS: &str =
    "connection content-length host keep-alive te trailer transfer-encoding upgrade";

/// A parameter before it has its place in the input.
pub(crate) struct Parameter {
    pub(crate) name: String,
    pub(crate) key: String,
    pub(crate) place: Place,
    pub(crate) encoding: Encoding,
    pub(crate) is_required: bool,
    pub(crate) schema: Object,
}

impl Parameter {
    /// Returns the parameter, or `None` for one that something else fills. An error says why no
    /// request can be made.
    pub(crate) fn of<'a>(
        object: &'a Map<String, Value>,
        credentials: &[&Credential],
        converter: &mut Converter<'a>,
    ) -> Result<Option<Self>, String> {
        let text = |field: &str| {
            object
                .get(field)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        let name = text("name").to_owned();
        let Some(place) = place_of(text("in")) else {
            return Err(format!("its parameter {name:?} is in an unknown place"));
        };
        if is_filled(&name, place, credentials) {
            return Ok(None);
        }
        if place == Place::Header && is_of_connection(&name) {
            converter.is_cut = true;
            return Ok(None);
        }
        let encoding = encoding_of(object, place)
            .ok_or_else(|| format!("its parameter {name:?} has the style {}", text("style")))?;
        let mut schema = match schema_in(object) {
            Some(schema) => converter.convert(schema, 1),
            None => Object::new(),
        };
        let description = plain(text("description"));
        if !description.is_empty() {
            let description = converter.cut(&description);
            schema.insert("description".into(), sentence(description).into());
        }
        describe(&name, &mut schema);
        let is_required =
            place == Place::Path || object.get("required") == Some(&Value::Bool(true));
        Ok(Some(Self {
            key: key_of(&name),
            name,
            place,
            encoding,
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
            fixed,
        }
    }

    /// Returns the word that distinguishes the parameter from another one of the same name.
    pub(crate) fn place_word(&self) -> &'static str {
        match self.place {
            Place::Path => "path",
            Place::Query => "query",
            Place::Header => "header",
            Place::Cookie => "cookie",
        }
    }
}

fn place_of(text: &str) -> Option<Place> {
    match text {
        "path" => Some(Place::Path),
        "query" => Some(Place::Query),
        "header" => Some(Place::Header),
        "cookie" => Some(Place::Cookie),
        _ => None,
    }
}

/// Returns true for a header that says how a connection is used.
pub(crate) fn is_of_connection(header: &str) -> bool {
    let header = header.trim().to_ascii_lowercase();
    let mut all = CONNECTION_HEADERS.split(' ');
    header.starts_with("proxy-") || all.any(|it| it == header)
}

/// Returns true for a parameter that a credential or the request itself fills.
fn is_filled(name: &str, place: Place, credentials: &[&Credential]) -> bool {
    if place == Place::Header && OWN_HEADERS.contains(&&*name.to_ascii_lowercase()) {
        return true;
    }
    credentials.iter().any(|credential| match credential {
        Credential::Header { name: own, .. } => {
            place == Place::Header && own.eq_ignore_ascii_case(name)
        }
        Credential::Query { name: own, .. } => place == Place::Query && own == name,
        Credential::Cookie { name: own, .. } => place == Place::Cookie && own == name,
        _ => false,
    })
}

/// Returns the encoding of a parameter, if it is one of those that a request can have.
fn encoding_of(parameter: &Map<String, Value>, place: Place) -> Option<Encoding> {
    if parameter.contains_key("content") {
        return Some(Encoding::Json);
    }
    let style = parameter.get("style").and_then(Value::as_str);
    encoding_named(
        style,
        parameter.get("explode").and_then(Value::as_bool),
        place,
    )
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
        (None | Some("form"), Place::Query) => Some(Encoding::Comma),
        (Some("spaceDelimited"), Place::Query) => Some(Encoding::Space),
        (Some("pipeDelimited"), Place::Query) => Some(Encoding::Pipe),
        (Some("deepObject"), Place::Query) => Some(Encoding::Deep),
        (None | Some("simple"), Place::Path | Place::Header)
        | (None | Some("form"), Place::Cookie) => Some(Encoding::Usual),
        _ => None,
    }
}

/// Returns the schema of a parameter, or that of its content.
fn schema_in(parameter: &Map<String, Value>) -> Option<&Value> {
    let content = || {
        parameter
            .get("content")?
            .as_object()?
            .values()
            .next()?
            .get("schema")
    };
    parameter.get("schema").or_else(content)
}
