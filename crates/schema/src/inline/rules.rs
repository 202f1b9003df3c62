//! The keywords of a schema that have no schemas in them.

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::{
    JsonObject, Schema,
    modern::exclude_limits,
    text::{clipped, plain, text_of},
    vocabulary::{is_of_kind, list_in, named_kinds},
};

/// The maximum number of values that are listed; of more, only the first ones are named.
const MOST_VALUES: usize = 100;
const NAMED_VALUES: usize = 20;
/// The maximum length, in bytes, of a default.
const LONGEST_DEFAULT: usize = 200;
/// The maximum length, in bytes, of an example in a description.
const LONGEST_EXAMPLE: usize = 60;
/// The maximum length, in bytes, of a pattern.
const LONGEST_PATTERN: usize = 300;
/// The formats that say no more than the type.
const SAYING_NOTHING: &str = "string text password int32 int64 float double";
/// The formats of texts that models know.
const FORMATS: &str = "date date-time email ipv4 ipv6 time uri uuid";

fn is_in(words: &str, word: &str) -> bool {
    words.split(' ').any(|it| it == word)
}

/// Returns the rules of a schema for its own value, and whether others are left out because the
/// document contradicts itself: the check helps a model, and the API checks the value in any case.
pub(super) fn of(schema: &JsonObject) -> (JsonObject, bool) {
    let mut rules = JsonObject::new();
    let mut add = |keyword: &str, value: Value| drop(rules.insert(keyword.to_owned(), value));
    let kinds = kinds_of(schema);
    match &*kinds {
        [] => {}
        [kind] => add("type", (*kind).into()),
        several => add("type", several.into()),
    }
    for (keyword, value) in schema {
        let is_valid = match &**keyword {
            "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" => value.is_u64(),
            "minimum" | "maximum" => value.is_number(),
            "exclusiveMinimum" | "exclusiveMaximum" => value.is_number() || value.is_boolean(),
            "multipleOf" => value.as_f64().is_some_and(|it| it > 0.0),
            "uniqueItems" => value.is_boolean(),
            "format" => value.as_str().is_some_and(|it| is_in(FORMATS, it)),
            "const" => fits(value, &kinds),
            "default" => value.to_string().len() <= LONGEST_DEFAULT,
            _ => false,
        };
        if is_valid {
            add(keyword, value.clone());
        }
    }
    if let Some(pattern) = pattern_of(schema) {
        add("pattern", pattern.into());
    }
    // OpenAPI 3.0.
    exclude_limits(&mut rules);
    let values = values_of(schema, &kinds);
    let is_other = |it: &Value| !it.is_null() && !fits(it, &kinds);
    let mut is_doubtful = list_in(schema.get("enum")).iter().any(is_other);
    if !values.is_empty() && values.len() <= MOST_VALUES {
        rules.insert("enum".into(), values.into());
    }
    for [least, most] in [
        ["minLength", "maxLength"],
        ["minItems", "maxItems"],
        ["minimum", "maximum"],
    ] {
        let limit = |keyword: &str| rules.get(keyword).and_then(Value::as_f64);
        let limits = limit(least).zip(limit(most));
        if limits.is_some_and(|(least, most)| least > most) {
            rules.retain(|keyword, _| keyword != least && keyword != most);
            is_doubtful = true;
        }
    }
    let has_lost = |it: &str| schema.contains_key(it) && !rules.contains_key(it);
    is_doubtful |= has_lost("const") || (has_lost("pattern") && !is_picture(schema));
    (rules, is_doubtful)
}

/// Returns the types, none for any, and a guess if the schema names none.
fn kinds_of(schema: &JsonObject) -> Vec<&'static str> {
    named_kinds(schema.get("type")).unwrap_or_else(|| {
        let values = list_in(schema.get("enum"));
        let are_texts = !values.is_empty() && values.iter().all(Value::is_string);
        Vec::from_iter(are_texts.then_some("string"))
    })
}

/// Returns the different values that a schema lists, each as one of these types.
fn values_of(schema: &JsonObject, kinds: &[&str]) -> Vec<Value> {
    let mut seen = HashSet::new();
    let values = list_in(schema.get("enum"))
        .iter()
        .filter_map(|it| fitting(it, kinds));
    values.filter(|it| seen.insert(it.clone())).collect()
}

/// Returns a value as one of these types, if it can be written so.
fn fitting(value: &Value, kinds: &[&str]) -> Option<Value> {
    if fits(value, kinds) {
        return Some(value.clone());
    }
    if value.is_null() {
        return None;
    }
    let text = text_of(value);
    let parsed = serde_json::from_str(&text).ok();
    let mut all = parsed.into_iter().chain([text.into()]);
    all.find(|it| fits(it, kinds))
}

/// Returns true for a value of one of these types.
fn fits(value: &Value, kinds: &[&str]) -> bool {
    kinds.is_empty() || kinds.iter().any(|kind| is_of_kind(value, kind))
}

/// Returns what a description has to say because the rules cannot.
pub(super) fn note_of(schema: &JsonObject) -> Option<String> {
    let text = |keyword: &str| schema.get(keyword).and_then(Value::as_str);
    let mut notes = Vec::new();
    match text("format").or(text("contentEncoding")) {
        Some("binary") => notes.push("The bytes in base64.".to_owned()),
        Some("byte" | "base64") => notes.push("In base64.".to_owned()),
        Some("duration") => notes.push("Format: duration (ISO 8601), such as P1DT2H.".to_owned()),
        Some(format) if !is_in(FORMATS, format) && !is_in(SAYING_NOTHING, format) => {
            notes.push(format!("Format: {}.", clipped(&plain(format), 40)));
        }
        _ => {}
    }
    if let Some(pattern) = text("pattern").filter(|_| pattern_of(schema).is_none()) {
        notes.push(format!("Pattern: {}.", clipped(&plain(pattern), 80)));
    }
    // Before draft 2020-12, the list was in `items`.
    let places = list_in(schema.get("prefixItems"))
        .iter()
        .chain(list_in(schema.get("items")).iter());
    let places = places.map(|it| it["type"].as_str().unwrap_or("any"));
    let places = places.collect::<Vec<_>>().join(", ");
    if !places.is_empty() {
        notes.push(format!("Its items are, in this order: {places}."));
    }
    let count = list_in(schema.get("enum")).len();
    if count > MOST_VALUES && values_of(schema, &[]).len() > MOST_VALUES {
        let named = list_in(schema.get("enum"))
            .iter()
            .take(NAMED_VALUES)
            .map(text_of);
        let named = named.collect::<Vec<_>>().join(", ");
        notes.push(format!("One of {count} values, such as {named}."));
    }
    if count == 0 && !schema.contains_key("default") {
        let first = || list_in(schema.get("examples")).iter().next();
        let example = schema.get("example").or_else(first);
        notes.extend(example.and_then(such_as));
    }
    (!notes.is_empty()).then(|| notes.join(" "))
}

/// Returns an example as a sentence, if it is short.
pub fn such_as(example: &Value) -> Option<String> {
    let is_telling = example.is_string() || example.is_number();
    let text = plain(&text_of(example));
    let is_short = (1..=LONGEST_EXAMPLE).contains(&text.len());
    (is_telling && is_short).then(|| format!("Example: {text}."))
}

/// Returns true for bytes: `format: binary` in OpenAPI 3.0, `contentMediaType` in 3.1.
pub(super) fn is_binary(schema: &JsonObject) -> bool {
    let is_text = schema.get("type").is_none_or(|it| it == "string");
    let media_type = schema.get("contentMediaType");
    let has_media_type = media_type.is_some_and(|it| it != "application/json");
    let format = schema.get("format").and_then(Value::as_str);
    is_text && (has_media_type || format == Some("binary"))
}

/// Returns a schema's pattern as validators read it. `None` for one that no text matches, such as one
/// with the flags of another language, and for one that the document's own examples do not match.
fn pattern_of(schema: &JsonObject) -> Option<String> {
    let written = schema.get("pattern")?.as_str()?;
    // Some documents keep the delimiters of a regular expression in source code.
    let inner = written.strip_prefix('/');
    let inner = inner.and_then(|it| it.strip_suffix('/'));
    let inner = inner.filter(|it| it.starts_with('^') || it.ends_with('$'));
    let pattern = inner.unwrap_or(written);
    let rule = Schema::from_value(json!({"pattern": pattern}));
    let is_unknown = pattern.len() > LONGEST_PATTERN || rule.compile().is_err();
    if is_unknown || never_matches(pattern) || is_picture(schema) {
        return None;
    }
    let said = ["example", "default"].into_iter();
    let said = said.filter_map(|it| schema.get(it));
    let listed = list_in(schema.get("examples"))
        .iter()
        .chain(list_in(schema.get("enum")).iter());
    let said = said.chain(listed);
    let mut texts = said.filter(|it| it.is_string()).take(MOST_VALUES);
    let are_valid = texts.all(|it| matches!(rule.check(it, ""), Ok(Ok(()))));
    are_valid.then(|| pattern.to_owned())
}

/// Returns true for a pattern with characters before its start or behind its end, such as delimiters
/// and flags of another language.
fn never_matches(pattern: &str) -> bool {
    let delimited = pattern.strip_prefix('/').and_then(|it| it.rsplit_once('/'));
    if delimited.is_some_and(|(_, flags)| {
        !flags.is_empty() && flags.bytes().all(|it| b"gimsuxy".contains(&it))
    }) {
        return true;
    }
    let (mut before, mut is_escaped, mut in_set) = ('(', false, false);
    let mut rest = pattern.chars().peekable();
    while let Some(it) = rest.next() {
        let is_plain = !is_escaped && !in_set;
        let is_behind = it == '^' && !"(|:=!".contains(before);
        let goes_on = it == '$' && rest.peek().is_some_and(|next| !")|".contains(*next));
        if is_plain && (is_behind || goes_on) {
            return true;
        }
        if !is_escaped {
            in_set = (in_set || it == '[') && it != ']';
        }
        is_escaped = it == '\\' && !is_escaped;
        before = it;
    }
    false
}

/// Returns true for a pattern that is a picture of its values, such as `YYYY-MM-DD`.
fn is_picture(schema: &JsonObject) -> bool {
    let pattern = schema.get("pattern").and_then(Value::as_str);
    pattern.is_some_and(|it| !it.contains(|it| "^$[](){}*+?\\|".contains(it)))
}
