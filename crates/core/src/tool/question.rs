//! Questions that a tool asks its user, and their answers.
//!
//! A tool that asks ends with a failure that carries the question; the client repeats the call with
//! the answer. Nothing is kept in between, so any instance can handle the repeated call.

mod form;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;

use super::{
    failure::{Failure, Question},
    schema::{self, ParameterErrors, Schema},
};
use form::form_of;

/// A user's answer to a question.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub enum Answer {
    Accepted(Value),
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

    /// Returns the failure of a tool that asks and has no answer.
    fn asked<T: DeserializeOwned + JsonSchema>() -> Failure {
        let answer = answer_in::<T>(&Answers::default(), "key", String::new());
        answer.err().unwrap()
    }

    #[derive(Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only its schema is used")]
    struct Booking {
        name: String,
    }

    #[derive(Deserialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    enum Meal {
        Lunch,
        Dinner,
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
    fn an_answer_that_the_schema_forbids_is_asked_for_again() {
        #[derive(Debug, Deserialize, JsonSchema)]
        #[expect(dead_code, reason = "only its schema is used")]
        struct Stay {
            #[schemars(range(min = 1))]
            nights: i32,
        }
        let answer = Answer::Accepted(json!({"nights": 0}));
        let answers = Answers::from([("stay".to_owned(), answer)]);
        let failure = answer_in::<Stay>(&answers, "stay", "How long?".into()).unwrap_err();
        assert!(failure.parts().question.is_some());
        let start = "How long?\nThe previous answer was invalid:";
        let message = &failure.parts().message;
        assert!(message.starts_with(start), "{message}");
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
        let failure = asked::<Odd>();
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
    fn nested_fields_and_flattened_enums_cannot_be_asked_for() {
        #[derive(Deserialize, JsonSchema)]
        #[expect(dead_code, reason = "only its schema is used")]
        struct Nested {
            inner: Booking,
        }
        #[derive(Deserialize, JsonSchema)]
        #[expect(dead_code, reason = "only its schema is used")]
        struct Flat {
            name: String,
            #[serde(flatten)]
            kind: Kind,
        }
        #[derive(Deserialize, JsonSchema)]
        #[serde(tag = "kind")]
        #[expect(dead_code, reason = "only its schema is used")]
        enum Kind {
            A { a: u8 },
            B { b: u8 },
        }
        for failure in [asked::<Nested>(), asked::<Flat>(), asked::<Value>()] {
            assert!(failure.parts().question.is_none());
        }
        let failure = asked::<Nested>();
        let detail = failure.parts().developer_message.as_deref().unwrap();
        assert!(detail.contains("'inner'"), "{detail}");
        // Also if there is an answer, as in a unit test.
        let answers = Answers::from([("key".to_owned(), Answer::Declined)]);
        assert!(answer_in::<Nested>(&answers, "key", String::new()).is_err());
    }
}
