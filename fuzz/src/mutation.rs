//! Mutation of inputs that hold JSON.
//!
//! libFuzzer changes bytes, and most changes of the bytes of a document break its syntax, or miss
//! the few that decide. Most changes here are of one string, name or value of the document.

use std::sync::LazyLock;

use fastrand::Rng;
use libfuzzer_sys::fuzzer_mutate;
use serde_json::{Deserializer, Value};

/// The length up to which strings are made longer or shorter: within it, every length occurs.
const LONGEST: usize = 16;

/// The names and values of the dictionary that libFuzzer uses too.
static WORDS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let lines = include_str!("../json.dict").lines();
    let entries = lines.filter(|line| line.starts_with('"'));
    entries
        .map(|line| serde_json::from_str(line).expect("an entry without escapes of its own"))
        .collect()
});

/// Changes an input that holds JSON, which is `data[..size]`, in place; returns the new size, which
/// is `max_size` at most.
pub fn mutate(data: &mut [u8], size: usize, max_size: usize, seed: u32) -> usize {
    let mut rng = Rng::with_seed(seed.into());
    let is_of_bytes = rng.u8(..4) == 0;
    let mutated = (!is_of_bytes).then(|| with_json_changed(&data[..size], &mut rng));
    match mutated.flatten() {
        Some(mutated) if mutated.len() <= max_size => {
            data[..mutated.len()].copy_from_slice(&mutated);
            mutated.len()
        }
        _ => fuzzer_mutate(data, size, max_size),
    }
}

/// Makes one change to an input, which has JSON values one after another, and the first byte of
/// some targets before them. Returns `None` if it has no value.
fn with_json_changed(data: &[u8], rng: &mut Rng) -> Option<Vec<u8>> {
    let is_json = matches!(data.first(), Some(b'{' | b'['));
    let (kind, json) = data.split_at_checked(usize::from(!is_json))?;
    let values = Deserializer::from_slice(json).into_iter::<Value>();
    let mut values: Vec<_> = values.map_while(Result::ok).collect();
    if values.is_empty() {
        return None;
    }
    let index = rng.usize(..values.len());
    change(&mut values[index], rng);
    let mut mutated = kind.to_vec();
    for value in values {
        serde_json::to_writer(&mut mutated, &value).expect("writing to memory does not fail");
    }
    Some(mutated)
}

/// Changes one string of a document, or one value of any kind.
fn change(document: &mut Value, rng: &mut Rng) {
    let of_string = rng.u8(..4) > 0;
    if of_string && let Some(Value::String(text)) = chosen(document, Value::is_string, rng) {
        return change_text(text, rng);
    }
    let donor = chosen(document, |_| true, rng).map(|it| it.clone());
    if let Some(value) = chosen(document, |_| true, rng) {
        change_value(value, donor.unwrap_or_default(), rng);
    }
}

/// Chooses one of the values in a document that `accepts` returns true for, all with the same
/// probability.
fn chosen<'v>(
    document: &'v mut Value,
    accepts: fn(&Value) -> bool,
    rng: &mut Rng,
) -> Option<&'v mut Value> {
    let (mut places, mut left) = (Vec::new(), vec![(String::new(), &*document)]);
    while let Some((place, value)) = left.pop() {
        let inner: Vec<(String, &Value)> = match value {
            Value::Array(items) => {
                let items = items.iter().enumerate();
                items.map(|(it, value)| (it.to_string(), value)).collect()
            }
            Value::Object(fields) => {
                let escaped = |name: &String| name.replace('~', "~0").replace('/', "~1");
                let fields = fields.iter();
                fields.map(|(name, it)| (escaped(name), it)).collect()
            }
            _ => Vec::new(),
        };
        let inner = inner.into_iter();
        left.extend(inner.map(|(name, it)| (format!("{place}/{name}"), it)));
        if accepts(value) {
            places.push(place);
        }
    }
    document.pointer_mut(&rng.choice(places)?)
}

fn change_text(text: &mut String, rng: &mut Rng) {
    // The body of an event is JSON in a string.
    if rng.u8(..8) > 0
        && let Ok(mut document @ Value::Object(_)) = serde_json::from_str(text)
    {
        change(&mut document, rng);
        *text = document.to_string();
        return;
    }
    let mut characters: Vec<char> = text.chars().collect();
    // Code that tells texts apart reads their beginnings.
    let last = match rng.bool() {
        true => characters.len().min(3),
        false => characters.len(),
    };
    let at = rng.usize(..=last);
    let visible = char::from(rng.u8(b' '..=b'~'));
    match rng.u8(..8) {
        0 => characters.resize(rng.usize(..=LONGEST), visible),
        1 => characters.insert(at, visible),
        2..=4 if at < characters.len() => characters[at] = visible,
        5 if at < characters.len() => drop(characters.remove(at)),
        6 => {
            *text = word(rng);
            return;
        }
        _ => {
            *text = changed_bytes(text);
            return;
        }
    }
    *text = characters.into_iter().collect();
}

/// Changes a text's bytes as libFuzzer does: it knows the values with which the code has compared.
fn changed_bytes(text: &str) -> String {
    let mut bytes = text.as_bytes().to_vec();
    bytes.resize(text.len() + LONGEST, 0);
    let max_size = bytes.len();
    let size = fuzzer_mutate(&mut bytes, text.len(), max_size);
    String::from_utf8_lossy(&bytes[..size]).into_owned()
}

fn word(rng: &mut Rng) -> String {
    rng.choice(WORDS.iter()).cloned().unwrap_or_default()
}

/// Adds, removes, renames or replaces. `donor` is a value of the same document.
fn change_value(value: &mut Value, donor: Value, rng: &mut Rng) {
    match (&mut *value, rng.u8(..4)) {
        (Value::Object(fields), 0) => drop(fields.insert(word(rng), donor)),
        (Value::Object(fields), 1) => {
            let text = word(rng);
            fields.insert(word(rng), text.into());
        }
        (Value::Object(fields), 2) => {
            let names: Vec<_> = fields.keys().cloned().collect();
            let removed = rng.choice(names).and_then(|name| fields.remove(&name));
            if let Some(removed) = removed.filter(|_| rng.bool()) {
                fields.insert(word(rng), removed);
            }
        }
        (Value::Array(items), 0) => items.insert(rng.usize(..=items.len()), donor),
        (Value::Array(items), 1 | 2) if !items.is_empty() => {
            drop(items.remove(rng.usize(..items.len())));
        }
        (_, 3) => *value = donor,
        _ => *value = scalar(rng),
    }
}

fn scalar(rng: &mut Rng) -> Value {
    match rng.u8(..9) {
        0 => Value::Null,
        1 => true.into(),
        2 => Value::Object(serde_json::Map::new()),
        3 => Value::Array(Vec::new()),
        4 => 0.into(),
        5 => (-1).into(),
        6 => 1.5.into(),
        // Above 2^53, where floats lose digits.
        7 => 9_007_199_254_740_993_u64.into(),
        _ => word(rng).into(),
    }
}
