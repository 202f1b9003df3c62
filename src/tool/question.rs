//! Questions that a tool asks its user, and their answers.
//!
//! A tool that asks ends with a failure that carries the question; the client repeats the call with
//! the answer. Nothing is kept in between, so any instance can handle the repeated call.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::{
    failure::{Failure, Question},
    schema::{self, ParameterErrors, Schema},
};

/// A user's answer to a question.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    Accepted(Value),
    Declined,
}

/// The answers that a call carries, by the keys of their questions.
pub(crate) type Answers = BTreeMap<String, Answer>;

/// The answer of the user, `None` if they declined to give one, or the failure that asks them.
pub(super) fn answer_in<T: DeserializeOwned + JsonSchema>(
    answers: &Answers,
    key: &str,
    message: String,
) -> Result<Option<T>, Failure> {
    let ask = |message: String| {
        let schema = schema::of_input::<T>();
        let form = form_of(&schema).map_err(|detail| {
            Failure::new("The tool could not complete the call").developer_message(detail)
        });
        let key = key.to_owned();
        form.map_or_else(
            |failure| failure,
            |form| Failure::new(message).with_question(Question { key, form }),
        )
    };
    match answers.get(key) {
        None => Err(ask(message)),
        Some(Answer::Declined) => Ok(None),
        Some(Answer::Accepted(content)) => match decode(content.clone()) {
            Ok(answer) => Ok(Some(answer)),
            Err(errors) => {
                let lines = errors
                    .iter()
                    .map(|(path, error)| format!("\n- {path}: {error}."));
                let lines: String = lines.collect();
                Err(ask(format!(
                    "{message}\nThe previous answer was invalid:{lines}"
                )))
            }
        },
    }
}

fn decode<T: DeserializeOwned + JsonSchema>(mut content: Value) -> Result<T, ParameterErrors> {
    let schema = Schema::of_type(schema::of_input::<T>);
    schema.drop_optional_nulls(&mut content);
    // A schema that does not compile rejects nothing; the type still does.
    if let Ok(result) = schema.check(&content, "answer") {
        result?;
    }
    schema.normalize(&mut content);
    super::decode(content)
}

/// The keywords of a form's field (MCP 2026-07-28, Elicitation, Requested Schema).
const FIELD_KEYWORDS: [&str; 14] = [
    "type",
    "title",
    "description",
    "default",
    "enum",
    "format",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "items",
    "minItems",
    "maxItems",
    "pattern",
];

/// The form for an answer: clients show one field for each property, and none that is nested.
fn form_of(schema: &Value) -> Result<Value, String> {
    let properties = schema["properties"].as_object();
    let mut fields = Map::new();
    for (name, property) in properties.into_iter().flatten() {
        let field = field_of(property).ok_or_else(|| {
            format!(
                "The answer's field '{name}' cannot be asked for: a form has only texts, numbers, \
                 booleans, constants and lists of constants."
            )
        })?;
        fields.insert(name.clone(), field);
    }
    if fields.is_empty() {
        return Err("The answer's type must be a struct with at least one field.".to_owned());
    }
    let mut form = json!({"type": "object", "properties": fields});
    if let Some(required) = schema.get("required") {
        form["required"] = required.clone();
    }
    Ok(form)
}

fn field_of(property: &Value) -> Option<Value> {
    let is_text = |schema: &Value| schema["type"] == "string";
    let is_field = match property["type"].as_str()? {
        "string" | "number" | "integer" | "boolean" => true,
        "array" => is_text(&property["items"]) && property["items"]["enum"].is_array(),
        _ => false,
    };
    let mut field = property.as_object().filter(|_| is_field)?.clone();
    field.retain(|keyword, _| FIELD_KEYWORDS.contains(&&**keyword));
    Some(field.into())
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    /// Never a description of the form.
    #[derive(Debug, Deserialize, JsonSchema, PartialEq)]
    struct Booking {
        /// Your name.
        #[schemars(length(min = 1))]
        name: String,
        guests: Option<u8>,
        meal: Meal,
    }

    #[derive(Debug, Deserialize, JsonSchema, PartialEq)]
    #[serde(rename_all = "lowercase")]
    enum Meal {
        Lunch,
        Dinner,
    }

    fn ask(answers: &Answers) -> Result<Option<Booking>, Failure> {
        answer_in(answers, "booking", "For whom?".to_owned())
    }

    fn answered(answer: Answer) -> Answers {
        Answers::from([("booking".to_owned(), answer)])
    }

    #[test]
    fn a_question_has_one_field_for_each_property() {
        let failure = ask(&Answers::new()).unwrap_err();
        assert_eq!(failure.message(), "For whom?");
        assert!(failure.can_retry());
        let question = failure.parts().question.as_ref().unwrap();
        assert_eq!(question.key, "booking");
        let expected = json!({
            "type": "object",
            "properties": {
                "name": {"type": "string", "minLength": 1, "description": "Your name."},
                "guests": {"type": "integer", "minimum": 0, "maximum": 255},
                "meal": {"type": "string", "enum": ["lunch", "dinner"]},
            },
            "required": ["name", "meal"],
        });
        assert_eq!(question.form, expected);
    }

    #[test]
    fn an_answer_is_decoded_and_a_refusal_is_none() {
        let content = json!({"name": "Ada", "guests": null, "meal": "lunch"});
        let booking = ask(&answered(Answer::Accepted(content))).unwrap();
        let expected = Booking {
            name: "Ada".to_owned(),
            guests: None,
            meal: Meal::Lunch,
        };
        assert_eq!(booking, Some(expected));
        assert_eq!(ask(&answered(Answer::Declined)).unwrap(), None);
    }

    #[test]
    fn an_invalid_answer_is_asked_for_again() {
        for content in [json!(null), json!({}), json!({"name": "", "meal": "lunch"})] {
            let failure = ask(&answered(Answer::Accepted(content))).unwrap_err();
            assert!(
                failure
                    .message()
                    .starts_with("For whom?\nThe previous answer was invalid:\n- ")
            );
            assert!(failure.parts().question.is_some());
        }
    }

    #[test]
    fn a_nested_field_cannot_be_asked_for() {
        #[derive(Debug, Deserialize, JsonSchema)]
        struct Nested {
            #[expect(dead_code, reason = "only its schema is used")]
            inner: Booking,
        }
        let failure = answer_in::<Nested>(&Answers::new(), "key", String::new()).unwrap_err();
        assert!(failure.parts().question.is_none());
        let detail = failure.parts().developer_message.as_deref().unwrap();
        assert!(detail.contains("'inner'"), "{detail}");
        assert!(answer_in::<Value>(&Answers::new(), "key", String::new()).is_err());
    }
}
