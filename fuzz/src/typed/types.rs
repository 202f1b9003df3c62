//! The types of the inputs, which use most of the attributes of serde and schemars.

use std::{
    collections::{BTreeMap, HashMap},
    num::NonZeroU8,
};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Takes numbers.
#[derive(Deserialize, JsonSchema, Serialize)]
pub(super) struct Numbers {
    /// One byte.
    byte: u8,
    /// A signed integer.
    signed: Option<i32>,
    /// A wide integer.
    wide: Option<i64>,
    /// A wide integer without a sign.
    unsigned: Option<u64>,
    /// A float.
    float: Option<f64>,
    /// A small float.
    small: Option<f32>,
    /// A percentage.
    #[schemars(range(min = 0, max = 100))]
    percent: Option<u32>,
    /// Not zero.
    nonzero: Option<NonZeroU8>,
}

/// A colour.
#[derive(Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Colour {
    Red,
    DarkBlue,
    #[serde(rename = "5")]
    Five,
}

/// A shape with a tag.
#[derive(Deserialize, JsonSchema, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Shape {
    /// A circle.
    Circle {
        /// The radius.
        radius: f64,
    },
    /// A box.
    Box {
        /// The width.
        width: u16,
        /// The height.
        height: Option<u16>,
    },
    /// A point.
    Point,
}

/// A shape whose tag is a field's name.
#[derive(Deserialize, JsonSchema, Serialize)]
enum External {
    /// Nothing.
    Unit,
    /// A number.
    One(u8),
    /// An object.
    Several {
        /// A text.
        text: String,
    },
}

/// A shape with a tag and a content.
#[derive(Deserialize, JsonSchema, Serialize)]
#[serde(tag = "type", content = "data")]
enum Adjacent {
    /// Nothing.
    Unit,
    /// A number.
    Number(i8),
    /// Texts.
    Texts(Vec<String>),
}

/// A text or a number.
#[derive(Deserialize, JsonSchema, Serialize)]
#[serde(untagged)]
enum Untagged {
    Number(u8),
    Text(String),
    Pair {
        /// The first.
        first: bool,
        /// The second.
        second: Option<bool>,
    },
}

/// Takes enums.
#[derive(Deserialize, JsonSchema, Serialize)]
pub(super) struct Enums {
    /// A colour.
    colour: Colour,
    /// A shape.
    shape: Option<Shape>,
    /// Another shape.
    external: Option<External>,
    /// And another one.
    adjacent: Option<Adjacent>,
    /// A text or a number.
    untagged: Option<Untagged>,
    /// Colours.
    #[serde(default)]
    colours: Vec<Colour>,
}

/// An address.
#[derive(Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
struct Address {
    /// The street.
    #[schemars(length(min = 1, max = 8))]
    street_name: String,
    /// The number.
    number: Option<u8>,
    /// The countries.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    countries: Vec<Option<String>>,
}

/// Takes objects in objects.
#[derive(Deserialize, JsonSchema, Serialize)]
pub(super) struct Nested {
    /// An address.
    home: Address,
    /// More addresses.
    others: Option<Vec<Address>>,
    /// Addresses by name.
    #[serde(default)]
    by_name: BTreeMap<String, Address>,
    /// Numbers by name.
    #[serde(default)]
    counts: HashMap<String, u8>,
    /// A pair.
    pair: Option<(i8, String)>,
    /// Three flags.
    flags: Option<[bool; 3]>,
    /// A character.
    letter: Option<char>,
    /// Anything.
    any: Option<Value>,
}

/// Paging.
#[derive(Deserialize, JsonSchema, Serialize)]
struct Page {
    /// The first item.
    #[serde(default)]
    offset: u32,
    /// The number of items.
    limit: Option<u8>,
}

/// Takes flattened fields.
#[derive(Deserialize, JsonSchema, Serialize)]
pub(super) struct Flattened {
    /// A query.
    query: String,
    #[serde(flatten)]
    page: Page,
    #[serde(flatten)]
    shape: Option<Shape>,
}

/// Takes patterns.
#[derive(Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Texts {
    /// A code.
    #[schemars(regex(pattern = "^[A-Z]{2}[0-9]+$"))]
    code: String,
    /// An address.
    #[schemars(email)]
    mail: Option<String>,
    /// A page.
    #[schemars(url)]
    page: Option<String>,
    /// Words.
    #[schemars(length(max = 2))]
    #[serde(default)]
    words: Vec<String>,
    /// With another name.
    #[serde(rename = "of", alias = "from")]
    origin: Option<String>,
    /// A default.
    #[serde(default = "seven")]
    count: i16,
}

fn seven() -> i16 {
    7
}
