//! Integers in a request that would lose digits: wider than 64 bits, and not exact as a float.
//!
//! Once read, such a number is indistinguishable from an intended float, so the text is searched.

/// Integers with fewer digits always fit.
const MIN_DIGITS: usize = 19;

/// The maximum number of paths in a result.
const MAX_PATHS: usize = 100;

/// The paths of the integers below `roots` that would lose digits, relative to their root, such as
/// `items[2].count`. The text must be valid JSON.
pub(super) fn lossy_paths(json: &[u8], roots: &[&str]) -> Vec<String> {
    if !has_long_number(json) {
        return Vec::new();
    }
    let mut walk = IntegerWalk {
        json,
        at: 0,
        steps: Vec::new(),
        paths: Vec::new(),
    };
    walk.run();
    let relative = |path: &String| roots.iter().find_map(|root| below(root, path));
    walk.paths.iter().filter_map(relative).collect()
}

/// The part of a path below a root; an empty root is the whole text.
fn below(root: &str, path: &str) -> Option<String> {
    let rest = path.strip_prefix(root)?;
    if root.is_empty() || rest.starts_with('[') {
        return Some(rest.to_owned());
    }
    rest.strip_prefix('.').map(str::to_owned)
}

/// True if the text has a run of [`MIN_DIGITS`] digits, in a number or elsewhere; few texts do.
fn has_long_number(json: &[u8]) -> bool {
    let is_digit = |byte: &u8| byte.is_ascii_digit();
    // Such a run covers one of these places, so the others are not looked at.
    let places = (MIN_DIGITS - 1..json.len()).step_by(MIN_DIGITS);
    let mut places = places.filter(|&at| is_digit(&json[at]));
    places.any(|at| {
        let before = json[..at]
            .iter()
            .rev()
            .take_while(|it| is_digit(it))
            .take(MIN_DIGITS);
        let after = json[at..]
            .iter()
            .take_while(|it| is_digit(it))
            .take(MIN_DIGITS);
        before.count() + after.count() >= MIN_DIGITS
    })
}

/// One step of a path.
enum PathStep {
    Item(usize),
    Field(Option<String>),
}

struct IntegerWalk<'a> {
    json: &'a [u8],
    at: usize,
    steps: Vec<PathStep>,
    paths: Vec<String>,
}

impl IntegerWalk<'_> {
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
        while let Some(&byte) = self.json.get(self.at) {
            self.at += 1;
            match byte {
                b'\\' => self.at += 1,
                b'"' => break,
                _ => {}
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
        if length >= MIN_DIGITS && self.paths.len() < MAX_PATHS && is_lossy(&rest[..length]) {
            self.paths.push(self.path());
        }
        self.at += length;
    }

    fn path(&self) -> String {
        let mut path = String::new();
        for step in &self.steps {
            match step {
                PathStep::Item(index) => path = format!("{path}[{index}]"),
                PathStep::Field(name) => {
                    let name = name.as_deref().unwrap_or_default();
                    path = crate::tool::schema::joined(&path, name);
                }
            }
        }
        path
    }
}

fn is_lossy(number: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(number) else {
        return false;
    };
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
