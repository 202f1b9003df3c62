//! Gmail, on behalf of a user, with a token from the call or from a grant.
//!
//! Reference: the Gmail API's `users.messages.list` and `users.messages.get`.

use std::sync::Arc;

use futures_util::future::try_join_all;
use lambda_tools::{Context, Failure, Secret, Tool};
use reqwest::{Response, StatusCode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::{Endpoints, error};

/// The maximum number of emails in a response: as many as a model can read at once.
const MAX_EMAILS: usize = 10;

/// Returns Gmail's tools.
#[must_use]
pub fn tools(endpoints: Arc<Endpoints>) -> Vec<Tool> {
    let get_emails = move |input: GetEmails, cx: Context| {
        let endpoints = Arc::clone(&endpoints);
        async move { get_emails(&endpoints, input, &cx).await }
    };
    vec![
        Tool::new("Gmail.GetEmails@1.2.0", get_emails)
            .authorization("google", ["https://www.googleapis.com/auth/gmail.readonly"])
            .user_id()
            .idempotent(),
    ]
}

/// Retrieves emails from Gmail using OAuth 2.0 authentication.
#[derive(Deserialize, JsonSchema)]
struct GetEmails {
    /// Search query for filtering emails.
    query: Option<String>,
}

#[derive(JsonSchema, Serialize)]
struct Emails {
    /// List of retrieved emails.
    emails: Vec<Email>,
}

#[derive(JsonSchema, Serialize)]
struct Email {
    id: String,
    subject: String,
    snippet: String,
}

async fn get_emails(
    endpoints: &Endpoints,
    input: GetEmails,
    cx: &Context,
) -> Result<Emails, Failure> {
    let gmail = Gmail {
        endpoints,
        token: cx.token("google")?,
        cx,
    };
    let list = gmail.list(input.query.as_deref()).await?;
    let emails = list.messages.iter().map(|message| gmail.email(&message.id));
    let emails = try_join_all(emails).await?;
    // Messages that were deleted in the meantime are omitted.
    let emails = emails.into_iter().flatten().collect();
    Ok(Emails { emails })
}

struct Gmail<'a> {
    endpoints: &'a Endpoints,
    token: &'a Secret,
    cx: &'a Context,
}

/// `users.messages.list`. Without matches the field is absent.
#[derive(Deserialize)]
struct MessageList {
    #[serde(default)]
    messages: Vec<Message>,
}

#[derive(Deserialize)]
struct Message {
    id: String,
}

/// `users.messages.get`, `format=metadata`.
#[derive(Deserialize)]
struct Metadata {
    id: String,
    /// Escaped as HTML by Gmail.
    #[serde(default)]
    snippet: String,
    #[serde(default)]
    payload: Payload,
}

#[derive(Default, Deserialize)]
struct Payload {
    #[serde(default)]
    headers: Vec<Header>,
}

#[derive(Deserialize)]
struct Header {
    name: String,
    value: String,
}

impl Gmail<'_> {
    async fn list(&self, query: Option<&str>) -> Result<MessageList, Failure> {
        let limit = MAX_EMAILS.to_string();
        let mut parameters = vec![("maxResults", limit.as_str())];
        parameters.extend(query.map(|query| ("q", query)));
        let response = self.get("messages", &parameters).await?;
        self.read(response).await
    }

    async fn email(&self, id: &str) -> Result<Option<Email>, Failure> {
        let parameters = [("format", "metadata"), ("metadataHeaders", "Subject")];
        let response = self.get(&format!("messages/{id}"), &parameters).await?;
        if response.status() == StatusCode::NOT_FOUND {
            return Ok(None);
        }
        let message: Metadata = self.read(response).await?;
        let is_subject = |header: &Header| header.name.eq_ignore_ascii_case("subject");
        let subject = message.payload.headers.into_iter().find(is_subject);
        Ok(Some(Email {
            id: message.id,
            subject: subject.map(|header| header.value).unwrap_or_default(),
            snippet: message.snippet,
        }))
    }

    async fn get(&self, path: &str, parameters: &[(&str, &str)]) -> Result<Response, Failure> {
        let url = format!("{}/gmail/v1/users/me/{path}", self.endpoints.gmail);
        let request = crate::http().get(url).query(parameters);
        let request = request
            .bearer_auth(self.token.expose())
            .timeout(self.endpoints.timeout);
        request.send().await.map_err(|error| no_response(&error))
    }

    async fn read<T: DeserializeOwned>(&self, response: Response) -> Result<T, Failure> {
        if response.status().is_success() {
            return response.json().await.map_err(|error| no_response(&error));
        }
        Err(self.failure_of(response).await)
    }

    async fn failure_of(&self, response: Response) -> Failure {
        let status = response.status();
        let busy = error::busy("Gmail", &response, self.cx.now());
        match status {
            StatusCode::TOO_MANY_REQUESTS => busy,
            status if status.is_server_error() => busy,
            StatusCode::UNAUTHORIZED => self.cx.token_rejected("google"),
            StatusCode::FORBIDDEN if is_over_quota(response).await => busy,
            StatusCode::FORBIDDEN => Failure::new("The user's token does not allow reading emails")
                .developer_message(
                    "Gmail answered 403: the token lacks the scope gmail.readonly, or the API is \
                     not enabled for its project.",
                ),
            status => Failure::new("Gmail could not answer the request")
                .developer_message(format!("Gmail answered {status}.")),
        }
    }
}

/// Reads have no effect, so a request without a response may be retried.
fn no_response(error: &reqwest::Error) -> Failure {
    error::no_response("Gmail", error).retry()
}

/// Returns true for an exceeded quota: Gmail reports some as a 403 with a special reason.
async fn is_over_quota(response: Response) -> bool {
    #[derive(Deserialize)]
    struct Body {
        error: Error,
    }
    #[derive(Deserialize)]
    struct Error {
        #[serde(default)]
        errors: Vec<Reason>,
    }
    #[derive(Deserialize)]
    struct Reason {
        #[serde(default)]
        reason: String,
    }
    let reasons = response.json::<Body>().await.map(|body| body.error.errors);
    let is_quota = |reason: &Reason| {
        let limits = [
            "rateLimitExceeded",
            "userRateLimitExceeded",
            "dailyLimitExceeded",
        ];
        limits.contains(&reason.reason.as_str())
    };
    reasons.is_ok_and(|reasons| reasons.iter().any(is_quota))
}
