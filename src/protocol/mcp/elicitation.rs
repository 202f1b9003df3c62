//! Elicitation: what the client has to obtain from its user before a call can succeed.
//!
//! The response to such a call names the requests; the client repeats the call with the responses.
//! Reference: 2026-07-28, Multi Round-Trip Requests, Elicitation.

use serde_json::{Map, Value, json};

use super::transport::CAPABILITIES;
use crate::{
    Failure,
    call::rejection::UnmetRequirements,
    tool::{
        failure::Question,
        question::{Answer, Answers},
        requirement::Challenge,
    },
};

/// The abilities of a client, and its user's responses.
#[derive(Default)]
pub(super) struct Elicitation {
    /// True if the client can send its user to a URL.
    opens_urls: bool,
    /// True if the client can show its user a form.
    shows_forms: bool,
    /// The responses of all rounds, by the keys of their requests.
    responses: Map<String, Value>,
}

impl Elicitation {
    /// Reads the params of a call. Responses to requests that this server never made are ignored.
    pub(super) fn of(params: &mut Value) -> Result<Self, &'static str> {
        let capability = &params["_meta"][CAPABILITIES]["elicitation"];
        let opens_urls = !capability["url"].is_null();
        // An empty object declares forms.
        let shows_forms = capability.is_object() && (!opens_urls || !capability["form"].is_null());
        let mut responses = match &params["requestState"] {
            Value::Null => Map::new(),
            state => responses_in(state).ok_or("'requestState' was not issued by this server.")?,
        };
        match params["inputResponses"].take() {
            Value::Null => {}
            Value::Object(latest) => responses.extend(latest),
            _ => return Err("'inputResponses' must be an object."),
        }
        Ok(Self {
            opens_urls,
            shows_forms,
            responses,
        })
    }

    /// The answers to questions; `None` if the client cannot show any.
    pub(super) fn answers(&self) -> Option<Answers> {
        let answer = |response: &Value| match response["action"].as_str()? {
            "accept" => Some(Answer::Accepted(response["content"].clone())),
            "decline" | "cancel" => Some(Answer::Declined),
            _ => None,
        };
        let answers = self.responses.iter();
        self.shows_forms.then(|| {
            answers
                .filter_map(|(key, response)| Some((key.clone(), answer(response)?)))
                .collect()
        })
    }

    /// The provider that the user declined to authorize, if there is one.
    pub(super) fn declined<'a>(&self, challenges: &'a [Challenge]) -> Option<&'a str> {
        let is_declined = |it: &&Challenge| {
            let action = self.responses.get(&it.provider).map(|it| &it["action"]);
            action.is_some_and(|action| action == "decline" || action == "cancel")
        };
        let declined = challenges.iter().find(is_declined);
        declined.map(|challenge| &*challenge.provider)
    }

    /// The result that asks the user to open the challenges' URLs, if the client can, and if
    /// nothing else is missing: otherwise the call would fail nevertheless.
    pub(super) fn challenge(
        &self,
        missing: &UnmetRequirements,
        server_info: &Value,
    ) -> Option<Value> {
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
            (challenge.provider.clone(), elicitation(&params))
        };
        let requests = challenges.iter().map(request).collect();
        Some(self.input_required(&requests, server_info))
    }

    /// The result that asks the user a question, whose text is the failure's message.
    pub(super) fn question(
        &self,
        failure: &Failure,
        question: &Question,
        server_info: &Value,
    ) -> Value {
        let params = json!({
            "mode": "form",
            "message": failure.message(),
            "requestedSchema": question.form,
        });
        let requests = [(question.key.clone(), elicitation(&params))];
        self.input_required(&requests.into_iter().collect(), server_info)
    }

    fn input_required(&self, requests: &Map<String, Value>, server_info: &Value) -> Value {
        // A repeated call brings only the latest responses, and the state brings the earlier ones.
        // It is not signed, because it contains only what the client itself has sent, and what it
        // could send again.
        let state = serde_json::to_string(&self.responses);
        json!({
            "resultType": "input_required",
            "inputRequests": requests,
            "requestState": state.expect("JSON values can be serialized as JSON"),
            "_meta": {"io.modelcontextprotocol/serverInfo": server_info},
        })
    }
}

fn elicitation(params: &Value) -> Value {
    json!({"method": "elicitation/create", "params": params})
}

fn responses_in(state: &Value) -> Option<Map<String, Value>> {
    serde_json::from_str(state.as_str()?).ok()
}
