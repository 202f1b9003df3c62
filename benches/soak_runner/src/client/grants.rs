//! Calls that need a user's grant: each user gets a challenge.

use serde_json::{Value, json};

use super::Client;
use crate::{
    answer::{Answer, expect},
    event::{DOMAIN, Event},
    protocol::{Call, Protocol},
};

impl Client {
    pub(super) async fn grant(&mut self) -> Option<()> {
        let names_user = self.key().is_some();
        let context = if names_user {
            json!({"user_id": format!("user-{}", self.random.u32(..1000))})
        } else {
            Value::Null
        };
        let call = Call {
            protocol: Protocol::WITH_CONTEXT[self.random.usize(..3)],
            tool: "Load.Mail",
            id: self.new_id(),
            input: json!({"client": self.number}),
            context,
        };
        let event = call.event(&self.credential());
        let unavailable = call.unavailable("");
        let judge = |answer: &Answer| {
            let id = challenge_in(answer);
            if answer.status == 400 && is_challenge(answer, &id) {
                return Ok(false);
            }
            if answer.store_failures > 0 && unavailable.judge(answer).is_ok() {
                return Ok(true);
            }
            Err(format!("no challenge: {}", answer.quoted()))
        };
        let answer = self.send("challenge", event, judge).await?;
        let id = challenge_in(&answer);
        self.status(&id).await?;
        self.consent_page(&id).await
    }

    /// Nobody consents. While the store fails, clients keep asking.
    async fn status(&mut self, id: &str) -> Option<()> {
        let event = Event::get(&format!("/authorization/challenges/{id}"));
        let expected = expect(200, json!({"status": "pending"}));
        self.expect("status of a challenge", event, &expected)
            .await?;
        Some(())
    }

    async fn consent_page(&mut self, id: &str) -> Option<()> {
        let event = Event::get(&format!("/authorization/challenges/{id}/start"));
        let judge = |answer: &Answer| {
            let text = String::from_utf8_lossy(&answer.body);
            if !text.starts_with("<!DOCTYPE html>") {
                return Err(format!("no page: {}", answer.quoted()));
            }
            if text.contains("use your Google account?</title>") && answer.status == 200 {
                return Ok(false);
            }
            if answer.store_failures > 0 && answer.status == 503 {
                return Ok(true);
            }
            Err(format!("another page: {}", answer.quoted()))
        };
        self.send("consent page", event, judge).await?;
        Some(())
    }
}

fn challenge_in(answer: &Answer) -> String {
    let json = answer.json();
    let id = json.pointer("/missing_requirements/authorization/0/id");
    id.and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// True if the answer offers exactly this challenge.
fn is_challenge(answer: &Answer, id: &str) -> bool {
    let url = format!("https://{DOMAIN}/authorization/challenges/{id}");
    let json = answer.json();
    let challenges = json!([{"id": id, "url": format!("{url}/start"), "check_url": url}]);
    id.len() == 64
        && id.bytes().all(|byte| byte.is_ascii_hexdigit())
        && json["missing_requirements"] == json!({"authorization": challenges})
        && json["message"] == "Authorization required before this tool can be called"
        && json["developer_message"]
            == "Load.Mail@1.0.0 needs a token for 'google' in context.authorization."
}
