//! Reading JSON within a budget.
//!
//! A few bytes of JSON can become a thousand in memory: `[[[0]]]` costs an allocation for each pair
//! of brackets. Unknown fields are not built at all, and values that are built are counted as they
//! are read, so no request or response takes more than its share of memory.

use std::{
    cell::{Cell, RefCell},
    fmt,
    sync::LazyLock,
};

pub use lambda_tools_schema::JsonObject;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use crate::text::{LONGEST_NAME, clipped};

/// The number of bytes of the size limit for each allowed value: 52,428 values for 1 MiB. Every
/// value counts, including arrays and objects; each takes about 100 bytes of memory, and up to 400.
const BYTES_PER_VALUE: usize = 20;

/// The minimum number of allowed values: a call and its context must fit, however small the size
/// limit is.
const MIN_VALUES: usize = 1000;

/// The maximum nesting depth of arrays and objects.
pub(crate) const MAX_DEPTH: usize = 64;

/// The part of a JSON text to build.
pub enum JsonScope {
    /// All of it.
    Whole,
    /// A string, a number, `true`, `false` or `null`. An array or an object is left empty.
    Scalar,
    /// An object with only the fields of these names. Other fields are skipped without being built.
    Fields(&'static [(&'static str, JsonScope)]),
    /// A list, with this scope for each item.
    List(&'static JsonScope),
}

/// An error while reading a text.
pub enum JsonError {
    /// The text is not JSON.
    Syntax(serde_json::Error),
    /// The text is JSON but is rejected for the reason that the sentence states.
    Rejected(String),
}

/// Returns the maximum number of values in a request or a response whose size limit is this many
/// bytes.
pub fn max_values(max_size: usize) -> usize {
    (max_size / BYTES_PER_VALUE).max(MIN_VALUES)
}

/// Reads a part of a JSON text, with at most this many values. A duplicate field is rejected:
/// programs that saw the request earlier may have used the other one.
pub fn read(json: &[u8], scope: &JsonScope, max_values: usize) -> Result<Value, JsonError> {
    read_with(json, scope, max_values, true)
}

/// Reads a whole text, with at most this many values; of duplicate fields, the last counts, as almost
/// everywhere (RFC 8259, 4).
pub fn read_whole(json: &[u8], max_values: usize) -> Result<Value, JsonError> {
    let read = |json: &[u8]| read_with(json, &JsonScope::Whole, max_values, false);
    read(json).or_else(|error| match (&error, repaired(json)) {
        (JsonError::Syntax(_), Some(json)) => read(&json),
        _ => Err(error),
    })
}

/// Returns a text as readers may take it that serde refuses: without a byte order mark (RFC 8259,
/// 8.1), and with U+FFFD for each escape of half a surrogate pair (8.2). `None` if it has neither.
pub fn repaired(json: &[u8]) -> Option<Vec<u8>> {
    let mut text = json.strip_prefix(b"\xef\xbb\xbf").unwrap_or(json).to_vec();
    let (mut is_changed, mut at) = (text.len() < json.len(), 0);
    while let Some(next) = text.get(at..)?.iter().position(|it| *it == b'\\') {
        at += next;
        at += match (escaped_unit(&text, at), escaped_unit(&text, at + 6)) {
            (Some(0xD800..0xDC00), Some(0xDC00..0xE000)) => 12,
            (Some(0xD800..0xE000), _) => {
                text[at..at + 6].copy_from_slice(br"\ufffd");
                is_changed = true;
                6
            }
            _ => 2,
        };
    }
    is_changed.then_some(text)
}

/// Returns the UTF-16 code unit of the escape at an index, if there is one.
fn escaped_unit(json: &[u8], at: usize) -> Option<u16> {
    let digits = json.get(at..at + 6)?.strip_prefix(br"\u")?;
    u16::from_str_radix(str::from_utf8(digits).ok()?, 16).ok()
}

/// Reads a part of a text that is rejected anyway: of duplicate fields, the last counts.
pub fn read_leniently(json: &[u8], scope: &JsonScope) -> Option<Value> {
    read_with(json, scope, usize::MAX, false).ok()
}

fn read_with(
    json: &[u8],
    scope: &JsonScope,
    max_values: usize,
    is_strict: bool,
) -> Result<Value, JsonError> {
    let reader = JsonReader {
        max_values,
        values_left: Cell::new(max_values),
        rejection: RefCell::default(),
        is_strict,
    };
    let seed = ValueSeed {
        reader: &reader,
        scope,
        depth: 0,
    };
    let mut deserializer = serde_json::Deserializer::from_slice(json);
    let value = seed.deserialize(&mut deserializer);
    let value = value.and_then(|value| deserializer.end().map(|()| value));
    value.map_err(|error| match reader.rejection.take() {
        Some(sentence) => JsonError::Rejected(sentence),
        None => JsonError::Syntax(error),
    })
}

/// The state while a text is read.
struct JsonReader {
    max_values: usize,
    values_left: Cell<usize>,
    rejection: RefCell<Option<String>>,
    is_strict: bool,
}

impl JsonReader {
    fn reject<E: Error>(&self, sentence: String) -> E {
        self.rejection.replace(Some(sentence));
        E::custom("rejected")
    }

    fn count<E: Error>(&self) -> Result<(), E> {
        if let Some(left) = self.values_left.get().checked_sub(1) {
            self.values_left.set(left);
            return Ok(());
        }
        let sentence = format!("The body has more than {} values.", self.max_values);
        Err(self.reject(sentence))
    }
}

/// The seed for the next value.
#[derive(Clone, Copy)]
struct ValueSeed<'a> {
    reader: &'a JsonReader,
    scope: &'a JsonScope,
    depth: usize,
}

impl<'a> ValueSeed<'a> {
    /// Returns the seed for a value inside this one.
    fn inner<E: Error>(self, scope: &'a JsonScope) -> Result<Self, E> {
        let depth = self.depth + 1;
        if depth > MAX_DEPTH {
            let sentence = format!("The body is nested more than {MAX_DEPTH} levels deep.");
            return Err(self.reader.reject(sentence));
        }
        Ok(Self {
            scope,
            depth,
            ..self
        })
    }
}

impl<'de> DeserializeSeed<'de> for ValueSeed<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        self.reader.count()?;
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ValueSeed<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let scope = match self.scope {
            JsonScope::Whole => self.scope,
            JsonScope::List(scope) => scope,
            JsonScope::Scalar | JsonScope::Fields(_) => {
                while items.next_element::<IgnoredAny>()?.is_some() {}
                return Ok(Value::Array(Vec::new()));
            }
        };
        let seed = self.inner(scope)?;
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(seed)? {
            list.push(item);
        }
        // A `Vec` starts with room for four items; in nested one-item lists, that would be most of
        // the memory.
        list.shrink_to_fit();
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        // Deeper objects start with room for one field: where there are many objects, most are
        // small, and spare capacity is not freed.
        let mut object = match self.depth {
            ..=2 => Map::new(),
            _ => Map::with_capacity(1),
        };
        while let Some(name) = fields.next_key::<String>()? {
            if name == NUMBER && object.is_empty() && *NUMBERS_ARE_MAPS {
                let digits: String = fields.next_value()?;
                let number = digits.parse().map_err(A::Error::custom)?;
                return Ok(Value::Number(number));
            }
            let Some(scope) = self.scope.of_field(&name) else {
                fields.next_value::<IgnoredAny>()?;
                continue;
            };
            if self.reader.is_strict && object.contains_key(&name) {
                let name = clipped(&name, LONGEST_NAME);
                let sentence = format!("The field '{name}' occurs twice in one object.");
                return Err(self.reader.reject(sentence));
            }
            let value = fields.next_value_seed(self.inner(scope)?)?;
            object.insert(name, value);
        }
        // An empty object is a level, too.
        self.inner::<A::Error>(self.scope)?;
        Ok(Value::Object(object))
    }
}

/// The only key of the map that a number is if another crate in the program enables `serde_json`'s
/// feature `arbitrary_precision`.
const NUMBER: &str = "$serde_json::private::Number";

/// True if that feature is enabled: only then does a number keep its digits. Otherwise, an object
/// with this key is an object.
static NUMBERS_ARE_MAPS: LazyLock<bool> = LazyLock::new(|| {
    let number = "1.10".parse::<Number>();
    number.is_ok_and(|number| number.to_string() == "1.10")
});

impl JsonScope {
    fn of_field(&self, name: &str) -> Option<&Self> {
        match self {
            Self::Whole => Some(self),
            Self::Fields(fields) => {
                let field = fields.iter().find(|(field, _)| *field == name);
                field.map(|(_, scope)| scope)
            }
            Self::Scalar | Self::List(_) => None,
        }
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

    const MAX: usize = 1000;

    fn value_of(json: &str) -> Value {
        read(json.as_bytes(), &CALL, MAX).ok().unwrap()
    }

    fn error_of(json: &str) -> String {
        match read(json.as_bytes(), &CALL, MAX) {
            Err(JsonError::Rejected(sentence)) => sentence,
            Err(JsonError::Syntax(error)) => format!("not JSON: {error}"),
            Ok(value) => panic!("{value}"),
        }
    }

    #[test]
    fn only_fields_in_scope_are_built() {
        let body = r#"{"other": [[[{}]]], "id": "a", "input": {"x": [1, -2, 1.5, null, true, "é"]},
            "context": {"secrets": [{"id": 1, "more": {}}, 7, []], "x": 1}}"#;
        assert_eq!(
            value_of(body),
            json!({"id": "a", "input": {"x": [1, -2, 1.5, null, true, "é"]},
                   "context": {"secrets": [{"id": 1}, 7, []]}})
        );
        // A value of the wrong type keeps its type.
        let value = value_of(r#"{"id": [1, 2], "context": [{"secrets": 1}]}"#);
        assert_eq!(value, json!({"id": [], "context": []}));
    }

    #[test]
    fn an_object_with_a_private_name_of_serde_json_stays_one() {
        let body = r#"{"input": {"$serde_json::private::Number": "5"}}"#;
        let value = read(body.as_bytes(), &CALL, MAX).ok().unwrap();
        let expected: Value = serde_json::from_str(body).unwrap();
        assert_eq!(value, expected);
    }

    #[test]
    fn values_and_depth_are_limited() {
        let many = |count: usize| format!(r#"{{"input": [{}0]}}"#, "0,".repeat(count - 1));
        assert!(read(many(MAX - 2).as_bytes(), &CALL, MAX).is_ok());
        assert_eq!(max_values(1 << 20), 52_428);
        assert_eq!(
            error_of(&many(MAX - 1)),
            "The body has more than 1000 values."
        );
        let deep = |levels: usize| {
            let (open, close) = ("[".repeat(levels), "]".repeat(levels));
            format!(r#"{{"input": {open}{close}}}"#)
        };
        let objects = |levels: usize| deep(levels).replace('[', r#"{"":"#).replace(']', "}");
        let objects = |levels: usize| objects(levels).replace(r#"{"":}"#, "{}");
        let sentence = "The body is nested more than 64 levels deep.";
        for deep in [&deep as &dyn Fn(usize) -> String, &objects] {
            assert!(read(deep(MAX_DEPTH - 1).as_bytes(), &CALL, MAX).is_ok());
            assert_eq!(error_of(&deep(MAX_DEPTH)), sentence);
        }
        // Too deep for any stack, in scope or not.
        assert_eq!(error_of(&deep(1_000_000)), sentence);
        let skipped = deep(1_000_000).replace("input", "other");
        assert!(read(skipped.as_bytes(), &CALL, MAX).is_ok());
    }

    #[test]
    fn duplicate_fields_are_rejected_at_every_depth() {
        let twice = "The field 'id' occurs twice in one object.";
        assert_eq!(error_of(r#"{"id": "a", "id": "a"}"#), twice);
        assert_eq!(error_of(r#"{"id": "a", "\u0069d": "b"}"#), twice);
        assert_eq!(error_of(r#"{"input": {"x": [{"id": 1, "id": 2}]}}"#), twice);
        let last = read_leniently(br#"{"id": "a", "id": "b"}"#, &CALL).unwrap();
        assert_eq!(last, json!({"id": "b"}));
    }

    #[test]
    fn what_other_readers_accept_is_repaired() {
        for (json, expected) in [
            (r#"["\ud83d"]"#, r#"["\ufffd"]"#),
            (r#"["\uDE00"]"#, r#"["\ufffd"]"#),
            (r#"["\ud83d\ud83d\ude00"]"#, r#"["\ufffd\ud83d\ude00"]"#),
            (r#"["\ude00\ud83d"]"#, r#"["\ufffd\ufffd"]"#),
            (r#"{"\ud83dx": "\ud83d\n"}"#, r#"{"\ufffdx": "\ufffd\n"}"#),
            (r#"["\ud83d\\ude00"]"#, r#"["\ufffd\\ude00"]"#),
            ("\u{feff}[1]", "[1]"),
            ("\u{feff}[\"\\ud800\"]", r#"["\ufffd"]"#),
        ] {
            assert!(serde_json::from_str::<Value>(json).is_err(), "{json}");
            let bytes = repaired(json.as_bytes()).unwrap();
            assert_eq!(String::from_utf8(bytes).unwrap(), expected);
            let value = read_whole(json.as_bytes(), MAX).ok().unwrap();
            assert_eq!(value, serde_json::from_str::<Value>(expected).unwrap());
        }
        let texts =
            r#"["\ud83d\ude00"] ["\\ud83d"] ["\u00e9"] ["\ufeff"] ["\ud83 ["\u+d80"] ["a\ ["\u"#;
        for nothing in texts.split(' ').chain(["[\u{feff}]", ""]) {
            assert_eq!(repaired(nothing.as_bytes()), None, "{nothing}");
        }
        // A text that is still invalid after the repair is an error.
        assert!(read_whole("\u{feff}[".as_bytes(), MAX).is_err());
    }

    #[test]
    fn invalid_json_is_a_syntax_error() {
        for text in r#"|{|{"id": }|{"id": "a"} x|{"other": [1,]}"#.split('|') {
            assert!(error_of(text).starts_with("not JSON"), "{text}");
        }
    }
}
