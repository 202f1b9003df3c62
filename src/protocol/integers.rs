//! The exact values of an input's large integers, as its text has them.
//!
//! A decoded float may have been an integer of which it lost digits. Once read, it is
//! indistinguishable from an intended float, so its text is read again.

use std::{collections::HashMap, fmt};

use serde::{
    Deserialize,
    de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::{Number, Value, value::RawValue};

use crate::tool::schema::{RoundedNumbers, joined};

/// The maximum number of paths in a result.
const MAX_PATHS: usize = 100;

/// The number of digits of the largest integer of 64 bits.
const MAX_INTEGER_DIGITS: usize = 20;

/// Floats represent every integer below this one.
const FIRST_INEXACT: f64 = 9_007_199_254_740_992.0;

/// Gives each number in `input` its exact value if that is an integer of 64 bits, and returns the
/// paths of the larger integers that lost digits. `json` is the valid text of the request, and the
/// input is at one of the paths `roots`.
pub(super) fn restore(json: &[u8], roots: &[&str], input: &mut Value) -> RoundedNumbers {
    let mut rounded = RoundedNumbers::default();
    if has_inexact(input) {
        let json = str::from_utf8(json).unwrap_or_default();
        let text = roots.iter().find_map(|root| text_at(json, root));
        let seed = ExactNumbers {
            value: input,
            path: String::new(),
            lossy_integers: &mut rounded.lossy_integers,
        };
        // The text was read before.
        let _ = seed.deserialize(&mut serde_json::Deserializer::from_str(
            text.unwrap_or("{}"),
        ));
    }
    rounded
}

fn has_inexact(value: &Value) -> bool {
    match value {
        Value::Number(number) => is_inexact(number),
        Value::Array(items) => items.iter().any(has_inexact),
        Value::Object(fields) => fields.values().any(has_inexact),
        _ => false,
    }
}

fn is_inexact(number: &Number) -> bool {
    let float = number.as_f64().filter(|_| number.is_f64());
    float.is_some_and(|it| it.abs() >= FIRST_INEXACT)
}

/// The text of the object or array at a path; an empty path is that of the whole text.
fn text_at<'a>(json: &'a str, path: &str) -> Option<&'a str> {
    let mut names = path.split('.').filter(|name| !name.is_empty());
    let text = names.try_fold(json, |json, name| {
        let fields: HashMap<String, &RawValue> = serde_json::from_str(json).ok()?;
        fields.get(name).map(|text| text.get())
    });
    text.filter(|text| text.trim_start().starts_with(['{', '[']))
}

/// Reads the text of a value again, for the numbers in it that may have lost digits.
struct ExactNumbers<'a> {
    value: &'a mut Value,
    path: String,
    lossy_integers: &'a mut Vec<String>,
}

impl<'de> DeserializeSeed<'de> for ExactNumbers<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        match self.value {
            Value::Array(_) => deserializer.deserialize_seq(self),
            Value::Object(_) => deserializer.deserialize_map(self),
            Value::Number(number) if is_inexact(number) => {
                let text = <&RawValue>::deserialize(deserializer)?.get();
                if let Some(integer) = integer_in(text) {
                    *number = integer;
                } else if self.lossy_integers.len() < MAX_PATHS && is_lossy(text, number) {
                    self.lossy_integers.push(self.path);
                }
                Ok(())
            }
            _ => IgnoredAny::deserialize(deserializer).map(drop),
        }
    }
}

impl<'de> Visitor<'de> for ExactNumbers<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the value that was read before")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let values = self.value.as_array_mut().into_iter().flatten();
        for (index, value) in values.enumerate() {
            let path = format!("{}[{index}]", self.path);
            items.next_element_seed(ExactNumbers {
                value,
                path,
                lossy_integers: self.lossy_integers,
            })?;
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        while let Some(name) = fields.next_key::<String>()? {
            let Some(value) = self.value.get_mut(&name) else {
                fields.next_value::<IgnoredAny>()?;
                continue;
            };
            let path = joined(&self.path, &name);
            fields.next_value_seed(ExactNumbers {
                value,
                path,
                lossy_integers: self.lossy_integers,
            })?;
        }
        Ok(())
    }
}

/// The integer of 64 bits that a text is, in any form of a number.
fn integer_in(text: &str) -> Option<Number> {
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (sign, unsigned) = match mantissa.strip_prefix('-') {
        Some(unsigned) => ("-", unsigned),
        None => ("", mantissa),
    };
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let digits = format!("{whole}{fraction}");
    let digits = digits.trim_start_matches('0');
    let exponent: i64 = exponent.parse().ok()?;
    // The number of digits before the decimal point.
    let point = i128::from(exponent) + digits.len() as i128 - fraction.len() as i128;
    let point = usize::try_from(point).ok()?;
    let digits = digits.trim_end_matches('0');
    if digits.len() > point || point > MAX_INTEGER_DIGITS {
        return None;
    }
    let integer: i128 = format!("{sign}{digits:0<point$}").parse().ok()?;
    Number::from_i128(integer)
}

/// True for an integer without a fraction or an exponent that lost digits.
fn is_lossy(text: &str, number: &Number) -> bool {
    let float = number.as_f64().unwrap_or_default();
    !text.contains(['.', 'e', 'E']) && format!("{float:.0}") != text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lossy_paths(json: &str, roots: &[&str], pointer: &str) -> Vec<String> {
        let value: Value = serde_json::from_str(json).unwrap();
        let mut input = value.pointer(pointer).unwrap().clone();
        restore(json.as_bytes(), roots, &mut input).lossy_integers
    }

    #[test]
    fn integers_that_would_lose_digits_are_listed() {
        let roots = ["input", "request.input"];
        for (text, pointer, paths) in [
            (
                r#"{"input": {"a": 18446744073709551617}}"#,
                "/input",
                &["a"][..],
            ),
            (
                r#"{"x": 1, "request": {"input": {"a": [1, {"b": -9223372036854775809}], "c": 1e300}}}"#,
                "/request/input",
                &["a[1].b"],
            ),
            (
                r#"{"input": {"\u0061\"": 123456789012345678901234567890, "s": "}", "t": 5}}"#,
                "/input",
                &["a\""],
            ),
            // Integers outside the roots are ignored.
            (
                r#"{"note": 123456789012345678901, "input": {"a": 1e300}}"#,
                "/input",
                &[],
            ),
        ] {
            assert_eq!(lossy_paths(text, &roots, pointer), paths, "{text}");
        }
        let text = r#"{"inputs": {"a": 123456789012345678901}}"#;
        assert_eq!(lossy_paths(text, &["input", "inputs"], "/inputs"), ["a"]);
        assert_eq!(lossy_paths(text, &[""], ""), ["inputs.a"]);
    }

    #[test]
    fn numbers_that_keep_their_digits_are_not_listed() {
        for number in [
            "18446744073709551615",
            "-9223372036854775808",
            "100000000000000000000",
            "18446744073709551616",
            "1.2345678901234567890123",
            "12345678901234567890123e0",
            "\"123456789012345678901234567890\"",
        ] {
            let text = format!(r#"{{"input": {{"a": {number}}}}}"#);
            assert!(
                lossy_paths(&text, &["input"], "/input").is_empty(),
                "{number}"
            );
        }
    }
}
