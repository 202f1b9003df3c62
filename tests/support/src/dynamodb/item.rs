//! Items and their attributes, as DynamoDB reads, measures and writes them.

use std::collections::BTreeMap;

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Map, Value, json};

use super::error::ApiError;

/// The largest item, in bytes.
const LARGEST_ITEM: usize = 400 * 1024;

/// The most digits of a number.
const MOST_DIGITS: usize = 38;

/// An attribute's value, of the types that the library writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Attribute {
    Text(String),
    Number(u128),
    Bytes(Vec<u8>),
    Flag(bool),
}

pub(super) type Item = BTreeMap<String, Attribute>;

/// Reads a JSON object of attributes.
pub(super) fn attributes(value: &Value) -> Result<Item, ApiError> {
    let object = value
        .as_object()
        .ok_or_else(|| ApiError::unsupported("attributes that are no JSON object"))?;
    let attributes = object.iter();
    attributes
        .map(|(name, value)| Ok((name.clone(), attribute(value)?)))
        .collect()
}

fn attribute(value: &Value) -> Result<Attribute, ApiError> {
    let typed = value.as_object().filter(|object| object.len() == 1);
    let typed = typed.and_then(|object| object.iter().next());
    match typed {
        Some((kind, Value::String(text))) => match &**kind {
            "S" => Ok(Attribute::Text(text.clone())),
            "N" => number(text),
            "B" => match BASE64_STANDARD.decode(text) {
                Ok(bytes) => Ok(Attribute::Bytes(bytes)),
                Err(_) => Err(ApiError::serialization("invalid base64")),
            },
            _ => Err(ApiError::unsupported(format!(
                "an attribute of type {kind}"
            ))),
        },
        Some((kind, Value::Bool(flag))) if kind == "BOOL" => Ok(Attribute::Flag(*flag)),
        _ => Err(ApiError::unsupported(format!(
            "the attribute value {value}"
        ))),
    }
}

fn number(text: &str) -> Result<Attribute, ApiError> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        // The library writes whole numbers only.
        return Err(ApiError::unsupported(format!("the number '{text}'")));
    }
    let digits = text.trim_start_matches('0');
    if digits.len() > MOST_DIGITS {
        return Err(ApiError::validation(
            "Attempting to store more than 38 significant digits in a Number",
        ));
    }
    Ok(Attribute::Number(digits.parse().unwrap_or(0)))
}

/// Returns an item in the format of responses.
pub(super) fn to_json(item: &Item) -> Value {
    let attributes = item.iter().map(|(name, value)| {
        let value = match value {
            Attribute::Text(text) => json!({"S": text}),
            Attribute::Number(number) => json!({"N": number.to_string()}),
            Attribute::Bytes(bytes) => json!({"B": BASE64_STANDARD.encode(bytes)}),
            Attribute::Flag(flag) => json!({"BOOL": flag}),
        };
        (name.clone(), value)
    });
    Value::Object(attributes.collect::<Map<_, _>>())
}

/// Checks the size of an item: the UTF-8 of names and texts, bytes as they are, and for a number one
/// byte for two significant digits and one more.
pub(super) fn check_size(item: &Item) -> Result<(), ApiError> {
    let size: usize = item
        .iter()
        .map(|(name, value)| name.len() + size_of(value))
        .sum();
    if size > LARGEST_ITEM {
        return Err(ApiError::validation(
            "Item size has exceeded the maximum allowed size",
        ));
    }
    Ok(())
}

fn size_of(value: &Attribute) -> usize {
    match value {
        Attribute::Text(text) => text.len(),
        Attribute::Number(number) => {
            let digits = number.to_string();
            digits.trim_end_matches('0').len().div_ceil(2) + 1
        }
        Attribute::Bytes(bytes) => bytes.len(),
        Attribute::Flag(_) => 1,
    }
}
