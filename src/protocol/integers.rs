//! The exact values of an input's numbers, as its text has them.
//!
//! A decoded number may have been rounded: an integer wider than 64 bits, or a number with a
//! fraction or an exponent that no float represents. Once read, it is indistinguishable from an
//! intended float, so the text is searched.

use memchr::memchr2;
use serde_json::{Number, Value};

use crate::tool::schema::{RoundedNumbers, joined};

/// Numbers of at most this length without an exponent have no more digits than a float.
const MAX_FLOAT_DIGITS: usize = 16;

/// The maximum number of paths in a result.
const MAX_PATHS: usize = 100;

/// The number of digits of the largest integer of 64 bits.
const MAX_INTEGER_DIGITS: usize = 20;

/// Floats represent every integer up to this one.
const MAX_EXACT_INTEGER: i128 = 1 << 53;

/// Floats from this one on have no fractions.
const FIRST_WITHOUT_FRACTION: f64 = 4_503_599_627_370_496.0;

/// Gives each number in `input` its exact value if that is an integer of 64 bits, and returns what
/// was lost of the others. `json` is the valid text of the request, and the input is at one of the
/// paths `roots`.
pub(super) fn restore(json: &[u8], roots: &[&str], input: &mut Value) -> RoundedNumbers {
    let mut has_float = false;
    each_number(input, &mut |number| has_float |= number.is_f64());
    if !has_float {
        return RoundedNumbers::default();
    }
    let mut walk = NumberWalk {
        json,
        roots,
        at: 0,
        steps: Vec::new(),
        texts: Vec::new(),
        lossy_integers: Vec::new(),
    };
    walk.run();
    RoundedNumbers {
        with_fractions: restore_numbers(input, &walk.texts),
        lossy_integers: walk.lossy_integers,
    }
}

/// Calls `f` with the numbers in a value, in the order of its text.
fn each_number(value: &mut Value, f: &mut impl FnMut(&mut Number)) {
    match value {
        Value::Number(number) => f(number),
        Value::Array(items) => items.iter_mut().for_each(|it| each_number(it, f)),
        Value::Object(fields) => fields.values_mut().for_each(|it| each_number(it, f)),
        _ => {}
    }
}

/// Restores the integers. Returns a copy of the input in which the numbers that lost their fraction
/// have one, if there are any.
fn restore_numbers(input: &mut Value, texts: &[&str]) -> Option<Value> {
    let mut texts = texts.iter();
    let mut fractions = Vec::new();
    each_number(input, &mut |number| {
        let exact = texts.next().and_then(|text| exact(text, number));
        if let Some(integer) = exact.as_ref().filter(|it| !it.is_f64()) {
            *number = integer.clone();
        }
        fractions.push(exact.filter(Number::is_f64));
    });
    fractions.iter().flatten().next()?;
    let mut copy = input.clone();
    let mut fractions = fractions.into_iter();
    each_number(&mut copy, &mut |number| {
        if let Some(fraction) = fractions.next().flatten() {
            *number = fraction;
        }
    });
    Some(copy)
}

/// The integer in the text of a float. For a fraction that was rounded to an integer, a float with
/// a fraction that is close to it. `None` if nothing was lost.
fn exact(text: &str, number: &Number) -> Option<Number> {
    let float = number.as_f64().filter(|_| number.is_f64())?;
    if text.len() <= MAX_FLOAT_DIGITS && !text.contains(['e', 'E']) {
        return None;
    }
    let (digits, point) = decimal(text);
    let is_whole = float.fract() == 0.0;
    if digits.len() > point {
        let fraction = is_whole.then(|| with_fraction(float, &digits[..point]));
        fraction.and_then(Number::from_f64)
    } else if digits.is_empty() || point > MAX_INTEGER_DIGITS {
        None
    } else {
        let size: i128 = format!("{digits:0<point$}").parse().ok()?;
        let integer = if float < 0.0 { -size } else { size };
        #[expect(
            clippy::cast_possible_truncation,
            reason = "a larger float is not the same"
        )]
        let is_same = is_whole && size <= MAX_EXACT_INTEGER && float as i128 == integer;
        Number::from_i128(integer).filter(|_| !is_same)
    }
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

/// The float with a fraction that is closest to a number that was rounded to `float`, and whose
/// digits before the decimal point are `whole`.
fn with_fraction(float: f64, whole: &str) -> f64 {
    let size = float.abs().min(FIRST_WITHOUT_FRACTION);
    let is_larger = whole.parse().unwrap_or(0.0) >= size && size < FIRST_WITHOUT_FRACTION;
    let neighbor = if is_larger {
        size.next_up()
    } else {
        size.next_down()
    };
    neighbor.copysign(float)
}

/// One step of a path.
enum PathStep {
    Item(usize),
    Field(Option<String>),
}

/// Collects the texts of the numbers below the roots.
struct NumberWalk<'a> {
    json: &'a [u8],
    roots: &'a [&'a str],
    at: usize,
    steps: Vec<PathStep>,
    texts: Vec<&'a str>,
    /// The paths of the integers that lost digits, relative to their root.
    lossy_integers: Vec<String>,
}

impl NumberWalk<'_> {
    fn run(&mut self) {
        while let Some(&byte) = self.json.get(self.at) {
            match byte {
                b'"' => self.string(),
                b'-' | b'0'..=b'9' => self.number(),
                _ => {
                    self.bracket(byte);
                    self.at += 1;
                }
            }
        }
    }

    fn bracket(&mut self, byte: u8) {
        match byte {
            b'{' => self.steps.push(PathStep::Field(None)),
            b'[' => self.steps.push(PathStep::Item(0)),
            b'}' | b']' => drop(self.steps.pop()),
            b',' => match self.steps.last_mut() {
                Some(PathStep::Item(index)) => *index += 1,
                Some(PathStep::Field(name)) => *name = None,
                None => {}
            },
            _ => {}
        }
    }

    /// Reads a string; in an object, a string in the position of a name is the name of a field.
    fn string(&mut self) {
        let start = self.at;
        self.at += 1;
        while let Some(rest) = self.json.get(self.at..)
            && let Some(length) = memchr2(b'"', b'\\', rest)
        {
            let is_end = rest[length] == b'"';
            self.at += length + if is_end { 1 } else { 2 };
            if is_end {
                break;
            }
        }
        if let Some(PathStep::Field(name @ None)) = self.steps.last_mut() {
            let text = self.json.get(start..self.at).unwrap_or_default();
            *name = Some(serde_json::from_slice(text).unwrap_or_default());
        }
    }

    fn number(&mut self) {
        let rest = &self.json[self.at..];
        let is_of_number =
            |byte: &u8| matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-');
        let length = rest.iter().take_while(|it| is_of_number(it)).count();
        self.at += length;
        let text = str::from_utf8(&rest[..length]).unwrap_or_default();
        let mut roots = self.roots.iter();
        let Some(steps) = roots.find_map(|root| below(&self.steps, root)) else {
            return;
        };
        if self.lossy_integers.len() < MAX_PATHS && is_lossy(text) {
            self.lossy_integers.push(path_of(steps));
        }
        self.texts.push(text);
    }
}

/// The steps below a root; an empty root is the whole text.
fn below<'a>(steps: &'a [PathStep], root: &str) -> Option<&'a [PathStep]> {
    let mut names = root.split('.').filter(|name| !name.is_empty());
    names.try_fold(steps, |steps, name| match steps.split_first()? {
        (PathStep::Field(Some(field)), rest) if field == name => Some(rest),
        _ => None,
    })
}

/// The path of some steps, such as `items[2].count`.
fn path_of(steps: &[PathStep]) -> String {
    steps.iter().fold(String::new(), |path, step| match step {
        PathStep::Item(index) => format!("{path}[{index}]"),
        PathStep::Field(name) => joined(&path, name.as_deref().unwrap_or_default()),
    })
}

/// True for an integer without a fraction or an exponent that lost digits.
fn is_lossy(text: &str) -> bool {
    let is_integer = !text.contains(['.', 'e', 'E']);
    if !is_integer || text.parse::<i64>().is_ok() || text.parse::<u64>().is_ok() {
        return false;
    }
    // Compares the digits with the resulting float's. The largest float has 309 digits.
    let float = text.parse::<f64>().unwrap_or(f64::INFINITY);
    text.len() > 400 || format!("{float:.0}") != text
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOTS: [&str; 2] = ["input", "request.input"];

    fn lossy_paths(json: &[u8], roots: &[&str]) -> Vec<String> {
        // The text need not be that of a number that fits in a float.
        let value = serde_json::from_slice(json).unwrap_or(Value::from(0.5));
        restore(json, roots, &mut value.clone()).lossy_integers
    }

    #[test]
    fn integers_that_would_lose_digits_are_listed() {
        for (text, paths) in [
            (r#"{"input": {"a": 18446744073709551617}}"#, &["a"][..]),
            (
                r#"{"x": 1, "request": {"input": {"a": [1, {"b": -9223372036854775809}], "c": 1e300}}}"#,
                &["a[1].b"],
            ),
            (
                r#"{"input": {"\u0061\"": 123456789012345678901234567890, "s": "}", "t": 5}}"#,
                &["a\""],
            ),
            // Integers outside the roots are ignored.
            (
                r#"{"note": 123456789012345678901, "input": {"a": 1e300}}"#,
                &[],
            ),
            (r#"{"inputs_": {"a": 123456789012345678901}}"#, &[]),
        ] {
            assert_eq!(lossy_paths(text.as_bytes(), &ROOTS), paths, "{text}");
        }
    }

    #[test]
    fn one_root_may_begin_with_another_and_an_empty_root_is_the_whole_text() {
        let text = br#"{"inputs": {"a": 123456789012345678901}}"#;
        assert_eq!(lossy_paths(text, &["input", "inputs"]), ["a"]);
        assert_eq!(lossy_paths(text, &[""]), ["inputs.a"]);
        assert_eq!(lossy_paths(b"[123456789012345678901]", &[""]), ["[0]"]);
    }

    #[test]
    fn numbers_that_keep_their_digits_are_not_listed() {
        for number in [
            "18446744073709551615",
            "-9223372036854775808",
            "100000000000000000000",
            "18446744073709551616",
            "1.2345678901234567890123",
            "1e400",
            "12345678901234567890123e0",
            "\"123456789012345678901234567890\"",
        ] {
            let text = format!(r#"{{"input": {{"a": {number}}}}}"#);
            assert!(lossy_paths(text.as_bytes(), &ROOTS).is_empty(), "{number}");
        }
        let long = format!(r#"{{"input": {{"a": {}}}}}"#, "1".repeat(1_000_000));
        assert_eq!(lossy_paths(long.as_bytes(), &ROOTS), ["a"]);
    }
}
