//! The exact values of an input's numbers, as its text has them.
//!
//! A decoded number may have been rounded to a whole float: an integer, or a number with a fraction
//! or an exponent. Once read, it is indistinguishable from an intended float, so its text is read
//! again.

use std::collections::HashMap;

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
    let mut exact = ExactNumbers {
        texts: numbers_in(text.unwrap_or_default()),
        has_fraction: false,
        lossy_integers: Vec::new(),
    };
    exact.restore(input, &mut copy, "");
    RoundedNumbers {
        with_fractions: exact.has_fraction.then_some(copy),
        lossy_integers: exact.lossy_integers,
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

/// Returns the text of the object or array at a path; an empty path is that of the whole text.
fn text_at<'a>(json: &'a str, path: &str) -> Option<&'a str> {
    let mut names = path.split('.').filter(|name| !name.is_empty());
    let text = names.try_fold(json, |json, name| {
        let fields: HashMap<String, &RawValue> = serde_json::from_str(json).ok()?;
        fields.get(name).map(|text| text.get())
    });
    text.filter(|text| text.trim_start().starts_with(['{', '[']))
}

/// Returns the texts of all numbers in valid JSON, in their order.
fn numbers_in(json: &str) -> impl Iterator<Item = &str> {
    let (mut is_in_text, mut is_escaped) = (false, false);
    let is_other = move |char: char| {
        let was_in_text = is_in_text;
        match char {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' => is_in_text = !is_in_text,
            _ => {}
        }
        was_in_text || !(char.is_ascii_digit() || "+-.eE".contains(char))
    };
    // `true` and `false` have an `e`.
    let parts = json.split(is_other);
    parts.filter(|part| part.contains(|char: char| char.is_ascii_digit()))
}

/// A second reading of the numbers of a value.
struct ExactNumbers<T> {
    /// The texts of the numbers that are left.
    texts: T,
    has_fraction: bool,
    /// The paths of the integers that lost digits.
    lossy_integers: Vec<String>,
}

impl<'a, T: Iterator<Item = &'a str>> ExactNumbers<T> {
    /// Restores the numbers of a value. `copy` is a copy of the value, in which the numbers that
    /// lost their fraction get one.
    fn restore(&mut self, value: &mut Value, copy: &mut Value, path: &str) {
        match (&mut *value, &mut *copy) {
            (Value::Number(number), _) => {
                let text = self.texts.next().unwrap_or_default();
                if let Some(float) = whole_float(number) {
                    self.set(value, copy, path, (text, float));
                }
            }
            (Value::Array(items), Value::Array(copies)) => {
                for (index, (item, copy)) in items.iter_mut().zip(copies).enumerate() {
                    self.restore(item, copy, &format!("{path}[{index}]"));
                }
            }
            (Value::Object(fields), Value::Object(copies)) => {
                for ((name, field), copy) in fields.iter_mut().zip(copies.values_mut()) {
                    self.restore(field, copy, &joined(path, name));
                }
            }
            _ => {}
        }
    }

    fn set(&mut self, value: &mut Value, copy: &mut Value, path: &str, (text, float): (&str, f64)) {
        match exact(text, float).map(Value::Number) {
            Some(fraction) if fraction.is_f64() => {
                *copy = fraction;
                self.has_fraction = true;
            }
            Some(integer) => {
                *value = integer.clone();
                *copy = integer;
            }
            None if is_lossy(text, float) && self.lossy_integers.len() < MAX_PATHS => {
                self.lossy_integers.push(path.to_owned());
            }
            None => {}
        }
    }
}

/// Returns the integer in the text of a whole float. For a fraction that was rounded to an integer,
/// a float with a fraction that is close to it. `None` if nothing was lost, or nothing can be
/// restored.
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

/// Returns the significant digits of a number, and the number of digits before its decimal point;
/// none for 0.
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

/// Returns true for an integer without a fraction or an exponent that lost digits.
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
            // Texts with escapes come before the number.
            let text = format!(r#"{{"input": {{"\"1": "2\\", "a": {number}}}}}"#);
            assert!(
                lossy_paths(&text, &["input"], "/input").is_empty(),
                "{number}"
            );
        }
    }
}
