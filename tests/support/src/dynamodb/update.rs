//! Update expressions: the part of their grammar that the library uses. Anything else is an error.

use serde_json::Value;

use super::{
    error::ApiError,
    item::{Attribute, Item},
};

/// The changes of an item: attributes, each with the name of a value.
pub(super) struct Update {
    /// The attributes that a number is added to.
    adds: Vec<(String, String)>,
    sets: Vec<(String, String)>,
}

impl Update {
    /// Parses `ADD a :x, … SET b = :y, …`.
    pub(super) fn parse(body: &Value) -> Result<Self, ApiError> {
        let text = body["UpdateExpression"].as_str().unwrap_or_default();
        let text = with_names(text, body)?;
        let rest = text.strip_prefix("ADD ").ok_or_else(|| unexpected(&text))?;
        let (adds, sets) = rest.split_once(" SET ").ok_or_else(|| unexpected(&text))?;
        Ok(Self {
            adds: pairs(adds, " ")?,
            sets: pairs(sets, " = ")?,
        })
    }

    /// Returns the item after the changes. An absent number counts as zero.
    pub(super) fn apply(
        self,
        id: String,
        current: Option<&Item>,
        values: &Item,
    ) -> Result<Item, ApiError> {
        let mut item = current.cloned().unwrap_or_default();
        item.insert("id".to_owned(), Attribute::Text(id));
        for (name, value) in self.sets {
            item.insert(name, value_of(&value, values)?);
        }
        for (name, value) in self.adds {
            let current = item.get(&name).cloned().unwrap_or(Attribute::Number(0));
            let (Attribute::Number(current), Attribute::Number(added)) =
                (current, value_of(&value, values)?)
            else {
                return Err(ApiError::validation(
                    "An operand in the update expression has an incorrect data type",
                ));
            };
            item.insert(name, Attribute::Number(current + added));
        }
        Ok(item)
    }
}

/// Returns an expression with the names that its placeholders stand for.
pub(super) fn with_names(text: &str, body: &Value) -> Result<String, ApiError> {
    let mut text = text.to_owned();
    let names = body["ExpressionAttributeNames"].as_object();
    for (placeholder, name) in names.into_iter().flatten() {
        let name = name.as_str().unwrap_or_default();
        text = text.replace(placeholder, name);
    }
    if text.contains('#') {
        return Err(unexpected(&text));
    }
    Ok(text)
}

fn pairs(text: &str, separator: &str) -> Result<Vec<(String, String)>, ApiError> {
    let is_word = |text: &str| {
        text.bytes()
            .all(|it| it.is_ascii_alphanumeric() || it == b'_')
    };
    let pair = |part: &str| {
        let (name, value) = part.trim().split_once(separator)?;
        let is_value = value.strip_prefix(':').is_some_and(is_word);
        (is_word(name) && is_value).then(|| (name.to_owned(), value.to_owned()))
    };
    let parts = text.split(',');
    parts
        .map(|part| pair(part).ok_or_else(|| unexpected(part)))
        .collect()
}

fn value_of(name: &str, values: &Item) -> Result<Attribute, ApiError> {
    let value = values.get(name).cloned();
    value.ok_or_else(|| ApiError::validation("An expression attribute value is not defined"))
}

fn unexpected(text: &str) -> ApiError {
    ApiError::unsupported(format!("the update expression '{text}'"))
}
