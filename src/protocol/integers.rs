//! The exact values of an input's numbers, as its text has them.
//!
//! A decoded number may have been rounded to a whole float: an integer, or a number with a fraction
//! or an exponent. Once read, it is indistinguishable from an intended float, so its text is read
//! again.

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

/// Floats represent every integer up to this one.
const MAX_EXACT_INTEGER: u128 = 1 << 53;

/// Floats from this one on have no fractions.
const FIRST_WITHOUT_FRACTION: f64 = 4_503_599_627_370_496.0;

/// Gives each number in `input` its exact value if that is an integer of 64 bits, and returns what
/// was lost of the others. `json` is the valid text of the request, and the input is at one of the
/// paths `roots`.
pub(super) fn restore(json: &[u8], roots: &[&str], input: &mut Value) -> RoundedNumbers {
    if !has_whole_float(input) {
        return RoundedNumbers::default();
    }
    let json = str::from_utf8(json).unwrap_or_default();
    let text = roots.iter().find_map(|root| text_at(json, root));
    let mut copy = input.clone();
    let mut found = Found::default();
    let seed = ExactNumbers {
        value: input,
        copy: &mut copy,
        path: String::new(),
        found: &mut found,
    };
    // The text was read before.
    let _ = seed.deserialize(&mut serde_json::Deserializer::from_str(
        text.unwrap_or("{}"),
    ));
    RoundedNumbers {
        with_fractions: found.has_fraction.then_some(copy),
        lossy_integers: found.lossy_integers,
    }
}

fn has_whole_float(value: &Value) -> bool {
    match value {
        Value::Number(number) => whole_float(number).is_some(),
        Value::Array(items) => items.iter().any(has_whole_float),
        Value::Object(fields) => fields.values().any(has_whole_float),
        _ => false,
    }
}

fn whole_float(number: &Number) -> Option<f64> {
    let float = number.as_f64().filter(|_| number.is_f64());
    float.filter(|it| it.fract() == 0.0)
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

#[derive(Default)]
struct Found {
    has_fraction: bool,
    /// The paths of the integers that lost digits.
    lossy_integers: Vec<String>,
}

/// Reads the text of a value again, for the whole floats in it.
struct ExactNumbers<'a> {
    value: &'a mut Value,
    /// A copy of the value, in which the numbers that lost their fraction get one.
    copy: &'a mut Value,
    path: String,
    found: &'a mut Found,
}

impl ExactNumbers<'_> {
    fn set(self, float: f64, text: &str) {
        match exact(text, float).map(Value::Number) {
            Some(fraction) if fraction.is_f64() => {
                *self.copy = fraction;
                self.found.has_fraction = true;
            }
            Some(integer) => {
                *self.value = integer.clone();
                *self.copy = integer;
            }
            None if is_lossy(text, float) && self.found.lossy_integers.len() < MAX_PATHS => {
                self.found.lossy_integers.push(self.path);
            }
            None => {}
        }
    }
}

impl<'de> DeserializeSeed<'de> for ExactNumbers<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        let float = self.value.as_number().and_then(whole_float);
        match (&self.value, float) {
            (Value::Array(_), _) => deserializer.deserialize_seq(self),
            (Value::Object(_), _) => deserializer.deserialize_map(self),
            (_, Some(float)) => {
                self.set(float, <&RawValue>::deserialize(deserializer)?.get());
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
        let copies = self.copy.as_array_mut().into_iter().flatten();
        for (index, (value, copy)) in values.zip(copies).enumerate() {
            items.next_element_seed(ExactNumbers {
                value,
                copy,
                path: format!("{}[{index}]", self.path),
                found: self.found,
            })?;
        }
        // The end of the list.
        items.next_element::<IgnoredAny>().map(drop)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        while let Some(name) = fields.next_key::<String>()? {
            match (self.value.get_mut(&name), self.copy.get_mut(&name)) {
                (Some(value), Some(copy)) => fields.next_value_seed(ExactNumbers {
                    value,
                    copy,
                    path: joined(&self.path, &name),
                    found: self.found,
                })?,
                _ => drop(fields.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

/// The integer in the text of a whole float. For a fraction that was rounded to an integer, a float
/// with a fraction that is close to it. `None` if nothing was lost, or nothing can be restored.
fn exact(text: &str, float: f64) -> Option<Number> {
    let (digits, point) = decimal(text);
    if digits.len() > point {
        let size = float.abs().min(FIRST_WITHOUT_FRACTION);
        let close = match size {
            0.0 => f64::MIN_POSITIVE,
            _ => size.next_down(),
        };
        return Number::from_f64(close.copysign(float));
    }
    if digits.is_empty() || point > MAX_INTEGER_DIGITS {
        return None;
    }
    let size: i128 = format!("{digits:0<point$}").parse().ok()?;
    let integer = if float < 0.0 { -size } else { size };
    Number::from_i128(integer).filter(|_| size.unsigned_abs() > MAX_EXACT_INTEGER)
}

/// The significant digits of a number, and the number of digits before its decimal point; none for
/// 0.
fn decimal(text: &str) -> (String, usize) {
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let unsigned = mantissa.trim_start_matches('-');
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let digits = format!("{whole}{fraction}");
    let digits = digits.trim_start_matches('0');
    // Only 0 may have a larger exponent than a float.
    let exponent: i64 = exponent.parse().unwrap_or(i64::MIN);
    let point = i128::from(exponent) + digits.len() as i128 - fraction.len() as i128;
    let digits = digits.trim_end_matches('0').to_owned();
    (digits, usize::try_from(point).unwrap_or(0))
}

/// True for an integer without a fraction or an exponent that lost digits.
fn is_lossy(text: &str, float: f64) -> bool {
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
