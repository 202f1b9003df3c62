//! Questions that a tool asks its user, and their answers.
//!
//! A tool that asks ends with a failure that carries the question; the client repeats the call with
//! the answer. Nothing is kept in between, so any instance can handle the repeated call.

mod form;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{
    failure::{Failure, Question},
    schema::{self, ParameterErrors, Schema},
};
use form::form_of;

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
    // Checked even if there is an answer, so that a unit test with answers finds the mistake.
    let form = form_of(&schema::of_input::<T>()).map_err(|detail| {
        Failure::new("The tool could not complete the call").developer_message(detail)
    })?;
    let errors = match answers.get(key) {
        Some(Answer::Declined) => return Ok(None),
        Some(Answer::Accepted(content)) => match decode(content, &form) {
            Ok(answer) => return Ok(Some(answer)),
            Err(errors) => errors,
        },
        None => ParameterErrors::new(),
    };
    let lines = errors
        .iter()
        .map(|(path, error)| format!("\n- {path}: {error}."));
    let message = match lines.collect::<String>() {
        lines if lines.is_empty() => message,
        lines => format!("{message}\nThe previous answer was invalid:{lines}"),
    };
    let key = key.to_owned();
    Err(Failure::new(message).with_question(Question { key, form }))
}

/// Decodes the fields of the form; a client may send others.
fn decode<T: DeserializeOwned + JsonSchema>(
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
    let result = super::decode(answer);
    result.map_err(|error| error.explained(schema.value()))
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

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
        for content in [json!(null), json!(7), json!({"name": "", "meal": "lunch"})] {
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

    #[test]
    fn a_form_has_only_the_keywords_of_the_specification() {
        #[derive(Deserialize, JsonSchema)]
        #[expect(dead_code, reason = "only its schema is used")]
        struct Odd {
            /// Where from.
            address: std::net::Ipv4Addr,
            #[schemars(regex(pattern = "^[A-Z]{2}$"))]
            country: String,
            #[schemars(extend("multipleOf" = 5))]
            step: f64,
            #[schemars(email)]
            mail: String,
            meals: Vec<Meal>,
        }
        let failure = answer_in::<Odd>(&Answers::new(), "odd", String::new()).map(|_| ());
        let failure = failure.unwrap_err();
        let form = &failure.parts().question.as_ref().unwrap().form;
        let expected = json!({
            "address": {"type": "string",
                "description": "Where from. JSON Schema: {\"format\":\"ipv4\"}"},
            "country": {"type": "string",
                "description": "JSON Schema: {\"pattern\":\"^[A-Z]{2}$\"}"},
            "step": {"type": "number", "description": "JSON Schema: {\"multipleOf\":5}"},
            "mail": {"type": "string", "format": "email"},
            "meals": {"type": "array", "items": {"type": "string", "enum": ["lunch", "dinner"]}},
        });
        assert_eq!(form["properties"], expected);
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
        // Also if there is an answer, as in a unit test.
        let answers = Answers::from([("key".to_owned(), Answer::Declined)]);
        assert!(answer_in::<Nested>(&answers, "key", String::new()).is_err());
    }

    #[test]
    fn a_flattened_enum_cannot_be_asked_for() {
        #[derive(Debug, Deserialize, JsonSchema)]
        #[expect(dead_code, reason = "only its schema is used")]
        struct Flat {
            name: String,
            #[serde(flatten)]
            kind: Kind,
        }
        #[derive(Debug, Deserialize, JsonSchema)]
        #[serde(tag = "kind")]
        #[expect(dead_code, reason = "only its schema is used")]
        enum Kind {
            A { a: u8 },
            B { b: u8 },
        }
        let failure = answer_in::<Flat>(&Answers::new(), "key", String::new()).unwrap_err();
        assert!(failure.parts().question.is_none());
    }
}
