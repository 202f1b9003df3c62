//! Elicitation: what the client has to obtain from its user before a call can succeed.
//!
//! The response to such a call names the requests; the client repeats the call with the responses.
//! Reference: 2026-07-28, Multi Round-Trip Requests, Elicitation.

use serde_json::{Map, Value, json};

use crate::{
    Challenge, Failure,
    call::rejection::UnmetRequirements,
    idempotency::digest_of,
    protocol::json::{
        self,
        JsonScope::{self, Fields, Scalar, Whole},
    },
    tool::{
        failure::Question,
        question::{Answer, Answers},
    },
};

/// The maximum size of all responses, in bytes: they are sent back and forth in the state.
const MAX_RESPONSES: usize = 32 * 1024;

/// The capabilities of a client, and its user's responses.
#[derive(Default)]
pub(super) struct Elicitation {
    /// True if the client can send its user to a URL.
    opens_urls: bool,
    /// True if the client can show its user a form.
    shows_forms: bool,
    /// The digest that identifies the call that the responses belong to.
    call: String,
    /// The responses of all rounds, by the keys of their requests.
    responses: Map<String, Value>,
}

impl Elicitation {
    /// Reads the params of a call of this tool, whose client declares these capabilities.
    pub(super) fn of(
        declared: &Value,
        params: &mut Value,
        (tool, input): (&str, &Value),
        max_values: usize,
    ) -> Result<Self, &'static str> {
        let capability = &declared["elicitation"];
        let opens_urls = capability["url"].is_object();
        // An empty object declares forms.
        let shows_forms = capability.is_object() && (capability["form"].is_object() || !opens_urls);
        if !shows_forms && !opens_urls {
            return Ok(Self::default());
        }
        let call = digest_of(&[&tool.into(), input]);
        let latest = match params["inputResponses"].take() {
            Value::Null => Map::new(),
            Value::Object(latest) => latest,
            _ => return Err("'inputResponses' must be an object."),
        };
        let mut responses = match &params["requestState"] {
            Value::Null => Map::new(),
            state => responses_in(state, &call, max_values)?,
        };
        responses.extend(latest.into_iter().filter(|(_, it)| it.is_object()));
        let size = serde_json::to_string(&responses).map_or(0, |text| text.len());
        if size > MAX_RESPONSES {
            return Err("The responses in 'inputResponses' are too large.");
        }
        Ok(Self {
            opens_urls,
            shows_forms,
            call,
            responses,
        })
    }

    /// Returns the user's answers; `None` if the client cannot ask its user.
    pub(super) fn answers(&self) -> Option<Answers> {
        let answer = |response: &Value| match response["action"].as_str() {
            Some("accept") => Some(Answer::Accepted(response["content"].clone())),
            Some("decline" | "cancel") => Some(Answer::Declined),
            _ => None,
        };
        let given = self.responses.iter();
        let given = given.filter_map(|(key, response)| Some((key.clone(), answer(response)?)));
        self.shows_forms.then(|| given.collect())
    }

    /// Returns the provider that the user declined to authorize, if there is one.
    pub(super) fn declined<'a>(&self, challenges: &'a [Challenge]) -> Option<&'a str> {
        let is_declined = |it: &&Challenge| {
            let response = self.responses.get(&key_of(it));
            let action = response.map(|it| &it["action"]);
            action.is_some_and(|action| action == "decline" || action == "cancel")
        };
        let declined = challenges.iter().find(is_declined);
        declined.map(|challenge| &*challenge.provider)
    }

    /// Returns the result that asks the user to open the challenges' URLs, if the client can, and
    /// if nothing else is missing: otherwise the call would fail nevertheless.
    pub(super) fn challenge(&self, missing: &UnmetRequirements) -> Option<Value> {
        let (challenges, requirements) = (&missing.challenges, &missing.requirements);
        let is_enough = challenges.len() == requirements.authorization.len()
            && requirements.secrets.is_empty()
            && missing.unreadable.is_empty()
            && !requirements.user_id;
        let is_asked = self.opens_urls && !challenges.is_empty() && is_enough;
        if !is_asked || self.declined(challenges).is_some() {
            return None;
        }
        let request = |challenge: &Challenge| {
            let params = json!({
                "mode": "url",
                "message": format!("Authorize '{}' once.", challenge.provider),
                "url": challenge.url,
            });
            (key_of(challenge), elicitation(&params))
        };
        let requests = challenges.iter().map(request).collect();
        Some(self.input_required(&requests))
    }

    /// Returns the result that asks the user a question, whose text is the failure's message.
    pub(super) fn question(&self, failure: &Failure, question: &Question) -> Value {
        let request = elicitation(&json!({
            "mode": "form",
            "message": failure.message(),
            "requestedSchema": question.form,
        }));
        let requests = [(question.key.clone(), request)];
        self.input_required(&requests.into_iter().collect())
    }

    fn input_required(&self, requests: &Map<String, Value>) -> Value {
        let responses = Value::Object(self.responses.clone());
        let state = json!({"digest": digest(&self.call, &responses), "responses": responses});
        json!({
            "resultType": "input_required",
            "inputRequests": requests,
            "requestState": state.to_string(),
        })
    }
}

/// Returns the key of a challenge's request, which no question's key should equal.
fn key_of(challenge: &Challenge) -> String {
    format!("authorize:{}", challenge.provider)
}

fn elicitation(params: &Value) -> Value {
    json!({"method": "elicitation/create", "params": params})
}

/// The format of `requestState`: the responses of earlier rounds, and the call that they belong to.
///
/// A repeated call brings only the latest responses, and no instance remembers the others. The
/// digest ties them to one tool and one input, so that no answer can confirm another call by
/// mistake. It is not a signature: the client, which could answer in its user's name in any case,
/// could compute it too. Reference: 2026-07-28, Multi Round-Trip Requests.
const STATE: JsonScope = Fields(&[("digest", Scalar), ("responses", Whole)]);

/// Reads the responses in a state that was issued for this call.
fn responses_in(
    state: &Value,
    call: &str,
    max_values: usize,
) -> Result<Map<String, Value>, &'static str> {
    let text = state.as_str().unwrap_or_default();
    let read = json::read(text.as_bytes(), &STATE, max_values);
    let mut state = read.map_err(|_| "'requestState' was not issued by this server.")?;
    let responses = state.get_mut("responses").map(Value::take);
    let responses = responses.unwrap_or_default();
    if state["digest"] != digest(call, &responses) {
        return Err("'requestState' was not issued for this call.");
    }
    match responses {
        Value::Object(responses) => Ok(responses),
        _ => Err("'requestState' was not issued by this server."),
    }
}

fn digest(call: &str, responses: &Value) -> String {
    digest_of(&[&call.into(), responses])
}
