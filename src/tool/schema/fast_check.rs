//! Checks values without `jsonschema`, where the schema has only common keywords.
//!
//! `jsonschema` first builds the meta-schema of a draft, which takes about as long as the rest of a
//! cold start, and then a validator for each schema. Most calls are valid, and most schemas are
//! derived from types: for them, this check suffices. It gives no reasons: `jsonschema` explains
//! why a value is invalid, and decides what this check cannot.

mod compile;
mod numbers;

use serde_json::{Map, Value};

use numbers::Range;

/// A schema that has only keywords that this check knows.
#[derive(Debug)]
pub(super) struct FastCheck(Node);

/// The result of a check. `Unknown` leaves the decision to `jsonschema`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Verdict {
    Valid,
    Invalid,
    Unknown,
}

use Verdict::{Invalid, Unknown, Valid};

/// A schema.
#[derive(Debug)]
enum Node {
    /// `true` or `false`.
    Constant(bool),
    Keywords(Box<Keywords>),
}

/// The assertions of a schema. Each limits only values of its own type.
#[derive(Debug, Default)]
struct Keywords {
    types: Option<Types>,
    values: Option<Vec<Value>>,
    object: Option<ObjectKeywords>,
    items: Option<Node>,
    item_count: Range,
    length: Range,
    number: Range,
    all_of: Vec<Node>,
    any_of: Option<Vec<Node>>,
    one_of: Option<Vec<Node>>,
}

/// The types that a schema allows.
#[derive(Debug, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "JSON Schema has seven independent types"
)]
struct Types {
    null: bool,
    boolean: bool,
    string: bool,
    integer: bool,
    number: bool,
    array: bool,
    object: bool,
}

#[derive(Debug)]
struct ObjectKeywords {
    /// Sorted by name.
    properties: Vec<Property>,
    required: usize,
    /// The schema of the other properties.
    additional: Node,
}

#[derive(Debug)]
struct Property {
    name: Box<str>,
    is_required: bool,
    node: Node,
}

impl FastCheck {
    /// `None` if the schema has a keyword that this check does not know, or an invalid one.
    pub(super) fn of(schema: &Value) -> Option<Self> {
        compile::node(schema).map(Self)
    }

    pub(super) fn check(&self, value: &Value) -> Verdict {
        self.0.check(value)
    }
}

impl Verdict {
    fn of(is_valid: bool) -> Self {
        if is_valid { Valid } else { Invalid }
    }

    /// Valid if both are, invalid if one is. The second is not computed if the first is invalid.
    fn and(self, other: impl FnOnce() -> Self) -> Self {
        match self {
            Invalid => Invalid,
            Valid => other(),
            Unknown if other() == Invalid => Invalid,
            Unknown => Unknown,
        }
    }
}

/// Valid if all are, invalid if one is.
fn all(mut verdicts: impl Iterator<Item = Verdict>) -> Verdict {
    let result = verdicts.try_fold(Valid, |so_far, verdict| match so_far.and(|| verdict) {
        Invalid => Err(()),
        other => Ok(other),
    });
    result.unwrap_or(Invalid)
}

impl Node {
    fn check(&self, value: &Value) -> Verdict {
        match self {
            Self::Constant(is_valid) => Verdict::of(*is_valid),
            Self::Keywords(keywords) => keywords.check(value),
        }
    }
}

impl Keywords {
    fn check(&self, value: &Value) -> Verdict {
        let types = self.types.as_ref().map_or(Valid, |it| it.check(value));
        types
            .and(|| self.check_contents(value))
            .and(|| self.check_values(value))
            .and(|| all(self.all_of.iter().map(|it| it.check(value))))
            .and(|| self.any_of.as_ref().map_or(Valid, |it| any_of(it, value)))
            .and(|| self.one_of.as_ref().map_or(Valid, |it| one_of(it, value)))
    }

    fn check_contents(&self, value: &Value) -> Verdict {
        match value {
            Value::Null | Value::Bool(_) => Valid,
            Value::Number(number) => self.number.contains(number),
            Value::String(text) => self.length.contains_count(|| text.chars().count()),
            Value::Array(items) => self.check_array(items),
            Value::Object(object) => self.object.as_ref().map_or(Valid, |it| it.check(object)),
        }
    }

    fn check_array(&self, array: &[Value]) -> Verdict {
        let count = self.item_count.contains_count(|| array.len());
        let Some(items) = &self.items else {
            return count;
        };
        count.and(|| all(array.iter().map(|it| items.check(it))))
    }

    /// Checks `enum` and `const`.
    fn check_values(&self, value: &Value) -> Verdict {
        let Some(values) = &self.values else {
            return Valid;
        };
        match values.contains(value) {
            true => Valid,
            // `1` equals `1.0` in JSON Schema, also within arrays and objects.
            false if value.is_number() || value.is_array() || value.is_object() => Unknown,
            false => Invalid,
        }
    }
}

fn any_of(nodes: &[Node], value: &Value) -> Verdict {
    let mut result = Invalid;
    for node in nodes {
        match node.check(value) {
            Valid => return Valid,
            Unknown => result = Unknown,
            Invalid => {}
        }
    }
    result
}

fn one_of(nodes: &[Node], value: &Value) -> Verdict {
    let (mut valid, mut unknown) = (0, 0);
    for node in nodes {
        match node.check(value) {
            Valid => valid += 1,
            Unknown => unknown += 1,
            Invalid => {}
        }
    }
    match (valid, unknown) {
        (1, 0) => Valid,
        (0, 0) | (2.., _) => Invalid,
        _ => Unknown,
    }
}

impl Types {
    fn check(&self, value: &Value) -> Verdict {
        Verdict::of(match value {
            Value::Null => self.null,
            Value::Bool(_) => self.boolean,
            Value::String(_) => self.string,
            Value::Array(_) => self.array,
            Value::Object(_) => self.object,
            Value::Number(_) if self.number => true,
            // A whole float is an integer too.
            Value::Number(number) if self.integer && number.is_f64() => return Unknown,
            Value::Number(_) => self.integer,
        })
    }
}

impl ObjectKeywords {
    fn check(&self, object: &Map<String, Value>) -> Verdict {
        let mut required = 0;
        let mut result = Valid;
        for (name, value) in object {
            let found = self.properties.binary_search_by(|it| (*it.name).cmp(name));
            let node = match found.ok().map(|index| &self.properties[index]) {
                Some(property) => {
                    required += usize::from(property.is_required);
                    &property.node
                }
                None => &self.additional,
            };
            result = result.and(|| node.check(value));
            if result == Invalid {
                return Invalid;
            }
        }
        result.and(|| Verdict::of(required == self.required))
    }
}

#[cfg(test)]
mod tests;
