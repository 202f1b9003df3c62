//! Reading JSON within a budget.
//!
//! A few bytes of JSON can become a thousand in memory: `[[[0]]]` costs an allocation for each
//! bracket. What nobody asked for is not built at all, and what is built is counted while it is
//! read, so that no request takes more than its share.

use std::{
    borrow::Cow,
    cell::{Cell, RefCell},
    fmt,
    sync::LazyLock,
};

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use crate::text::clipped;

/// How many values a request may have for each byte that it may have: 52,428 in 1 MiB. Each number,
/// text, array and object counts; in memory one takes about 100 bytes, and up to 400.
const VALUES_PER_BYTE: f64 = 0.05;

/// Whatever the owner allows, a call and its context have to fit.
const LEAST_VALUES: usize = 1000;

/// How deep arrays and objects may lie in each other.
pub(crate) const DEEPEST: usize = 64;

/// What of a JSON text is wanted.
pub(super) enum JsonScope {
    /// All of it.
    Whole,
    /// A text, a number, `true`, `false` or `null`. An array or an object is left empty.
    Scalar,
    /// An object, and in it the fields of these names. Others are skipped without being built.
    Fields(&'static [(&'static str, JsonScope)]),
    /// A list, each item of this shape.
    List(&'static JsonScope),
}

/// Why a text is not read.
pub(super) enum JsonError {
    /// It is not JSON.
    Syntax(serde_json::Error),
    /// It is JSON, and refused for what this sentence says.
    Refused(String),
}

/// How many values are read where a request may have this many bytes.
pub(crate) fn most_values(max_request_size: usize) -> usize {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        clippy::cast_sign_loss,
        reason = "Lambda takes 6 MB"
    )]
    let values = (max_request_size as f64 * VALUES_PER_BYTE) as usize;
    values.max(LEAST_VALUES)
}

/// Reads what is wanted of a JSON text, at most this many values. A field that is there twice is
/// refused: programs before this one may have looked at the other one.
pub(super) fn read(json: &[u8], shape: &JsonScope, most: usize) -> Result<Value, JsonError> {
    read_with(json, shape, most, true)
}

/// The same of a text that is refused anyway: of a field that is there twice, the first counts.
pub(super) fn glance(json: &[u8], shape: &JsonScope) -> Option<Value> {
    read_with(json, shape, usize::MAX, false).ok()
}

fn read_with(
    json: &[u8],
    shape: &JsonScope,
    most: usize,
    is_strict: bool,
) -> Result<Value, JsonError> {
    let reading = JsonReader {
        most,
        values: Cell::new(most),
        refusal: RefCell::default(),
        is_strict,
    };
    let place = ValueSeed {
        reading: &reading,
        shape,
        depth: 0,
    };
    let mut deserializer = serde_json::Deserializer::from_slice(json);
    let read = place.deserialize(&mut deserializer);
    let read = read.and_then(|value| deserializer.end().map(|()| value));
    read.map_err(|error| match reading.refusal.take() {
        Some(sentence) => JsonError::Refused(sentence),
        None => JsonError::Syntax(error),
    })
}

/// What is kept while a text is read.
struct JsonReader {
    most: usize,
    /// How many values may still come.
    values: Cell<usize>,
    refusal: RefCell<Option<String>>,
    is_strict: bool,
}

impl JsonReader {
    fn refuse<E: Error>(&self, sentence: String) -> E {
        self.refusal.replace(Some(sentence));
        E::custom("refused")
    }

    fn count<E: Error>(&self) -> Result<(), E> {
        match self.values.get().checked_sub(1) {
            Some(left) => {
                self.values.set(left);
                Ok(())
            }
            None => Err(self.refuse(format!("The body has more than {} values.", self.most))),
        }
    }
}

/// A value that comes next.
#[derive(Clone, Copy)]
struct ValueSeed<'a> {
    reading: &'a JsonReader,
    shape: &'a JsonScope,
    depth: usize,
}

impl<'a> ValueSeed<'a> {
    /// The place of a value inside of this one.
    fn inner<E: Error>(self, shape: &'a JsonScope) -> Result<Self, E> {
        let depth = self.depth + 1;
        if depth > DEEPEST {
            let sentence = format!("The body is nested more than {DEEPEST} levels deep.");
            return Err(self.reading.refuse(sentence));
        }
        Ok(Self {
            shape,
            depth,
            ..self
        })
    }
}

impl<'de> DeserializeSeed<'de> for ValueSeed<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ValueSeed<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        self.reading.count()?;
        Ok(Value::Bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        self.reading.count()?;
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        self.reading.count()?;
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        self.reading.count()?;
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        self.reading.count()?;
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E: Error>(self, value: String) -> Result<Value, E> {
        self.reading.count()?;
        Ok(Value::String(value))
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        self.reading.count()?;
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        self.reading.count()?;
        let shape = match self.shape {
            JsonScope::Whole => self.shape,
            JsonScope::List(shape) => shape,
            JsonScope::Scalar | JsonScope::Fields(_) => {
                while items.next_element::<IgnoredAny>()?.is_some() {}
                return Ok(Value::Array(Vec::new()));
            }
        };
        let place = self.inner(shape)?;
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(place)? {
            list.push(item);
        }
        // A list grows to four items at once, which is most of what nested lists of one cost.
        list.shrink_to_fit();
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        self.reading.count()?;
        // Deep inside, room for one field at first: objects that are many have few, mostly, and room is
        // not given back.
        let mut object = match self.depth {
            ..=2 => Map::new(),
            _ => Map::with_capacity(1),
        };
        while let Some(FieldName(name)) = fields.next_key()? {
            if name == NUMBER && object.is_empty() && *NUMBERS_ARE_MAPS {
                let digits: String = fields.next_value()?;
                let number = digits.parse().map_err(A::Error::custom)?;
                return Ok(Value::Number(number));
            }
            let Some(shape) = self.shape.of_field(&name) else {
                fields.next_value::<IgnoredAny>()?;
                continue;
            };
            if object.contains_key(&*name) {
                if self.reading.is_strict {
                    let name = clipped(&name, LONGEST_NAME);
                    let sentence = format!("The field '{name}' is there twice in one object.");
                    return Err(self.reading.refuse(sentence));
                }
                fields.next_value::<IgnoredAny>()?;
                continue;
            }
            let value = fields.next_value_seed(self.inner(shape)?)?;
            object.insert(name.into_owned(), value);
        }
        Ok(Value::Object(object))
    }
}

/// What `serde_json` calls numbers, where some other crate of the program has switched on its feature
/// `arbitrary_precision`.
const NUMBER: &str = "$serde_json::private::Number";

/// Whether it has. Then numbers come as maps, as they do to `serde_json`'s own values.
static NUMBERS_ARE_MAPS: LazyLock<bool> = LazyLock::new(|| {
    struct IsMap;
    impl<'de> Visitor<'de> for IsMap {
        type Value = bool;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a number")
        }

        fn visit_u64<E: Error>(self, _: u64) -> Result<bool, E> {
            Ok(false)
        }

        fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<bool, A::Error> {
            fields.next_entry::<IgnoredAny, IgnoredAny>()?;
            Ok(true)
        }
    }
    let mut number = serde_json::Deserializer::from_str("1");
    number.deserialize_any(IsMap).unwrap_or(false)
});

/// Names come from the caller and may be of any length; this is in bytes.
const LONGEST_NAME: usize = 64;

impl JsonScope {
    fn of_field(&self, name: &str) -> Option<&Self> {
        match self {
            Self::Whole => Some(self),
            Self::Fields(fields) => {
                let known = fields.iter().find(|(known, _)| *known == name);
                known.map(|(_, shape)| shape)
            }
            Self::Scalar | Self::List(_) => None,
        }
    }
}

/// A field's name, borrowed where it has no escapes.
struct FieldName<'de>(Cow<'de, str>);

impl<'de> serde::Deserialize<'de> for FieldName<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl<'de> Visitor<'de> for Text {
            type Value = FieldName<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a name")
            }

            fn visit_borrowed_str<E: Error>(self, name: &'de str) -> Result<FieldName<'de>, E> {
                Ok(FieldName(Cow::Borrowed(name)))
            }

            fn visit_str<E: Error>(self, name: &str) -> Result<FieldName<'de>, E> {
                Ok(FieldName(Cow::Owned(name.to_owned())))
            }
        }
        deserializer.deserialize_str(Text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const CALL: JsonScope = JsonScope::Fields(&[
        ("id", JsonScope::Scalar),
        ("input", JsonScope::Whole),
        (
            "context",
            JsonScope::Fields(&[(
                "secrets",
                JsonScope::List(&JsonScope::Fields(&[("id", JsonScope::Scalar)])),
            )]),
        ),
    ]);

    const MOST: usize = 1000;

    fn refusal(json: &str) -> String {
        match read(json.as_bytes(), &CALL, MOST) {
            Err(JsonError::Refused(sentence)) => sentence,
            Err(JsonError::Syntax(error)) => format!("not JSON: {error}"),
            Ok(value) => panic!("{value}"),
        }
    }

    #[test]
    fn what_is_wanted_is_read_and_nothing_else() {
        let body = r#"{"other": [[[{}]]], "id": "a", "input": {"x": [1, -2, 1.5, null, true, "é"]},
            "context": {"secrets": [{"id": 1, "more": {}}, 7, []], "x": 1}}"#;
        let value = read(body.as_bytes(), &CALL, MOST).ok().unwrap();
        assert_eq!(
            value,
            json!({"id": "a", "input": {"x": [1, -2, 1.5, null, true, "é"]},
                   "context": {"secrets": [{"id": 1}, 7, []]}})
        );
        // What is of the wrong kind stays of its kind.
        let value = read(
            br#"{"id": [1, 2], "context": [{"secrets": 1}]}"#,
            &CALL,
            MOST,
        );
        assert_eq!(value.ok().unwrap(), json!({"id": [], "context": []}));
    }

    #[test]
    fn a_budget_of_values_and_depth_is_kept() {
        let many = |count: usize| format!(r#"{{"input": [{}0]}}"#, "0,".repeat(count - 1));
        assert!(read(many(MOST - 2).as_bytes(), &CALL, MOST).is_ok());
        assert_eq!(most_values(1 << 20), 52_428);
        assert_eq!(
            refusal(&many(MOST - 1)),
            "The body has more than 1000 values."
        );
        let deep = |levels: usize| {
            format!(
                r#"{{"input": {}{}}}"#,
                "[".repeat(levels),
                "]".repeat(levels)
            )
        };
        assert!(read(deep(DEEPEST - 1).as_bytes(), &CALL, MOST).is_ok());
        let sentence = "The body is nested more than 64 levels deep.";
        assert_eq!(refusal(&deep(DEEPEST + 1)), sentence);
        // Far beyond any stack, wanted or not.
        assert_eq!(refusal(&deep(1_000_000)), sentence);
        let unwanted = deep(1_000_000).replace("input", "other");
        assert!(read(unwanted.as_bytes(), &CALL, MOST).is_ok());
    }

    #[test]
    fn a_field_that_is_there_twice_is_refused_at_every_depth() {
        let twice = "The field 'id' is there twice in one object.";
        assert_eq!(refusal(r#"{"id": "a", "id": "a"}"#), twice);
        assert_eq!(refusal(r#"{"id": "a", "\u0069d": "b"}"#), twice);
        assert_eq!(refusal(r#"{"input": {"x": [{"id": 1, "id": 2}]}}"#), twice);
        let first = glance(br#"{"id": "a", "id": "b"}"#, &CALL).unwrap();
        assert_eq!(first, json!({"id": "a"}));
    }

    #[test]
    fn what_is_not_json_is_said_to_be_so() {
        for text in [
            "",
            "{",
            r#"{"id": }"#,
            r#"{"id": "a"} x"#,
            r#"{"other": [1,]}"#,
        ] {
            assert!(refusal(text).starts_with("not JSON"), "{text}");
        }
    }
}
