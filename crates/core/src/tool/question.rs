//! Questions that a tool asks its user, and their answers.
//!
//! A tool that asks ends with a failure that carries the question; the client repeats the call with
//! the answer. Nothing is kept in between, so any instance can handle the repeated call.
//!
//! Clients show a question as a form, with one field for each property, and refuse forms with
//! anything that the specification does not list (MCP 2026-07-28, Elicitation, Requested Schema).

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Map, Value, json};

use super::{
    failure::{Failure, Question},
    schema::{
        self, ParameterErrors, Schema,
        decode::decode,
        reduced::{appended, take_description},
        vocabulary::{
            Role::{Branch, Condition, OtherPart, Reference},
            has_role,
        },
    },
};

/// The formats that a form may have.
const FORMATS: [&str; 4] = ["date", "date-time", "email", "uri"];

/// A user's answer to a question.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub enum Answer {
    /// The content of the form.
    Accepted(Value),
    /// The user declined to give one, or closed the form.
    Declined,
}

/// The answers that a call carries, by the keys of their questions.
pub type Answers = BTreeMap<String, Answer>;

/// Returns the answer of the user, `None` if they declined to give one, or the failure that asks
/// them.
pub(super) fn answer_in<T: DeserializeOwned + JsonSchema>(
    answers: &Answers,
    key: &str,
    message: String,
) -> Result<Option<T>, Failure> {
    // Checked even if there is an answer, so that a unit test with answers finds the mistake.
    let form = form_of(&schema::of_input::<T>()).map_err(|detail| {
        Failure::new("The tool could not complete the call").developer_message(detail)
    })?;
    let errors = match answers.get(key) {
        Some(Answer::Declined) => return Ok(None),
        Some(Answer::Accepted(content)) => match answer_of(content, &form) {
            Ok(answer) => return Ok(Some(answer)),
            Err(errors) => errors,
        },
        None => ParameterErrors::new(),
    };
    let lines = errors.iter();
    let lines = lines.map(|(path, error)| format!("\n- {path}: {error}."));
    let message = match lines.collect::<String>() {
        lines if lines.is_empty() => message,
        lines => format!("{message}\nThe previous answer was invalid:{lines}"),
    };
    let key = key.to_owned();
    Err(Failure::new(message).with_question(Question { key, form }))
}

/// Decodes the fields of the form; a client may send others.
fn answer_of<T: DeserializeOwned + JsonSchema>(
    content: &Value,
    form: &Value,
) -> Result<T, ParameterErrors> {
    let sent = content.as_object().into_iter().flatten();
    let is_field = |name: &String| form["properties"].get(name).is_some();
    let fields = sent.filter(|(name, _)| is_field(name));
    let fields = fields.map(|(name, value)| (name.clone(), value.clone()));
    let mut answer = Value::Object(fields.collect());
    let schema = Schema::of_type(schema::of_input::<T>);
    schema.drop_optional_nulls(&mut answer);
    // A schema that does not compile rejects nothing; the type still does.
    if let Ok(result) = schema.check(&answer, "answer") {
        result?;
    }
    schema.normalize(&mut answer);
    let result = decode(answer);
    result.map_err(|error| error.explained(schema.value()))
}

/// Returns the form for an answer with this schema, or the reason why there is none.
fn form_of(schema: &Value) -> Result<Value, String> {
    let properties = schema["properties"].as_object();
    let properties = properties.filter(|it| !it.is_empty());
    let mut keywords = schema.as_object().into_iter().flatten();
    let decides_more =
        keywords.any(|(it, _)| has_role(it, &[Reference, Branch, Condition, OtherPart]));
    let Some(properties) = properties.filter(|_| !decides_more) else {
        return Err("An answer is a struct with at least one field, and no enum.".to_owned());
    };
    let mut fields = Map::new();
    for (name, property) in properties {
        let field = field_of(property).ok_or_else(|| {
            format!(
                "The answer's field '{name}' cannot be asked for: a form has only texts, numbers, \
                 booleans, constants (enums without data) and lists of constants."
            )
        })?;
        fields.insert(name.clone(), field);
    }
    let mut form = json!({"type": "object", "properties": fields});
    if let Some(required) = schema.get("required") {
        form["required"] = required.clone();
    }
    Ok(form)
}

/// Returns a field, without the keywords that a form cannot have; they become part of its
/// description.
fn field_of(property: &Value) -> Option<Value> {
    let is_allowed: fn(&str, &Value) -> bool = match property["type"].as_str()? {
        "string" if property.get("enum").is_some() => |keyword, _| keyword == "enum",
        "string" => |keyword, value| match keyword {
            "format" => FORMATS.iter().any(|format| value == format),
            _ => ["minLength", "maxLength"].contains(&keyword),
        },
        "number" | "integer" if property.get("enum").is_none() => {
            |keyword, _| ["minimum", "maximum"].contains(&keyword)
        }
        "boolean" if property.get("enum").is_none() => |_, _| false,
        "array" if is_constant(&property["items"]) => {
            |keyword, _| ["items", "minItems", "maxItems"].contains(&keyword)
        }
        _ => return None,
    };
    let mut field = Map::new();
    let mut others = Map::new();
    for (keyword, value) in property.as_object()? {
        let is_common = ["type", "description", "default"].contains(&&**keyword);
        let target = if is_common || is_allowed(keyword, value) {
            &mut field
        } else {
            &mut others
        };
        target.insert(keyword.clone(), value.clone());
    }
    if let Some(items) = field.get_mut("items") {
        *items = json!({"type": "string", "enum": items["enum"]});
    }
    if !others.is_empty() {
        let note = format!("JSON Schema: {}", Value::from(others));
        let description = appended(take_description(&mut field), &[note]);
        field.insert("description".into(), description.into());
    }
    Some(field.into())
}

fn is_constant(schema: &Value) -> bool {
    schema["type"] == "string" && schema["enum"].is_array()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_may_send_other_fields_or_none() {
        #[derive(Deserialize, JsonSchema)]
        struct Note {
            note: Option<String>,
        }
        for content in [json!(null), json!({}), json!({"note": null, "other": 1})] {
            let answers = Answers::from([("note".to_owned(), Answer::Accepted(content))]);
            let note: Option<Note> = answer_in(&answers, "note", String::new()).unwrap();
            assert_eq!(note.unwrap().note, None);
        }
    }

    /// Schemas of fields, and the fields of forms that they become.
    const FIELDS: &str = r#"
{"type": "string", "format": "ipv4", "description": "Where from."} => {"type": "string", "description": "Where from. JSON Schema: {\"format\":\"ipv4\"}"}
{"type": "string", "pattern": "^[A-Z]{2}$"} => {"type": "string", "description": "JSON Schema: {\"pattern\":\"^[A-Z]{2}$\"}"}
{"type": "number", "multipleOf": 5} => {"type": "number", "description": "JSON Schema: {\"multipleOf\":5}"}
{"type": "string", "format": "email"} => {"type": "string", "format": "email"}
{"type": "array", "items": {"type": "string", "enum": ["lunch"], "title": "A meal"}} => {"type": "array", "items": {"type": "string", "enum": ["lunch"]}}
{"type": "array", "items": {"type": "string"}} => none
{"type": "object", "properties": {"name": {"type": "string"}}} => none
"#;

    #[test]
    fn a_form_has_only_the_keywords_of_the_specification() {
        for row in FIELDS.lines().skip(1) {
            let (property, field) = row.split_once(" => ").unwrap();
            let property: Value = property.parse().unwrap();
            let form = form_of(&json!({"properties": {"p": property}}));
            match field.parse::<Value>() {
                Ok(field) => assert_eq!(form.unwrap()["properties"]["p"], field),
                Err(_) => assert!(form.unwrap_err().contains("'p'"), "{property}"),
            }
        }
        let text = json!({"p": {"type": "string"}});
        for whole in [json!({}), json!({"properties": text, "oneOf": []})] {
            assert!(form_of(&whole).is_err(), "{whole}");
        }
    }

    /// A unit test with answers finds the mistake, too.
    #[test]
    fn an_impossible_question_has_no_answer() {
        #[derive(Deserialize, JsonSchema)]
        #[expect(dead_code, reason = "only its schema is used")]
        struct Nested {
            inner: Vec<u8>,
        }
        let declined = Answers::from([("key".to_owned(), Answer::Declined)]);
        for answers in [Answers::new(), declined] {
            let failure = answer_in::<Nested>(&answers, "key", String::new());
            let failure = failure.err().unwrap();
            assert!(failure.parts().question.is_none());
            let detail = failure.parts().developer_message.as_deref().unwrap();
            assert!(detail.contains("'inner'"), "{detail}");
        }
    }
}
