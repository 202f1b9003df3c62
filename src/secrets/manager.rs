//! AWS Secrets Manager.
//!
//! The client is created when a secret is first read, so that a function whose tools need no secret
//! pays nothing.

mod refusal;

use std::sync::OnceLock;

use aws_sdk_secretsmanager::{Client, error::ProvideErrorMetadata, primitives::Blob};
use serde_json::Value;

use super::{
    ReadFuture, ReadResult, SecretStore,
    batch::{in_order, is_name, valid_names},
};
use crate::{Secret, StoreError, aws};
use refusal::{arn, is_absent, request_error, result_of_error};

/// Secrets in AWS Secrets Manager, for [`Secrets::from_store`](super::Secrets::from_store).
///
/// ```
/// use lambda_tools::secrets::{Secrets, SecretsManager};
///
/// // TWILIO_API_KEY is the secret production/TWILIO_API_KEY.
/// let one_each = Secrets::from_store(SecretsManager::new().prefix("production/"));
/// // TWILIO_API_KEY is a key of the JSON object in the secret production/tools.
/// let together = Secrets::from_store(SecretsManager::new().json("production/tools"));
/// ```
///
/// Values may be strings, or binary if they are UTF-8. In a JSON object, strings are used
/// unchanged, `null` means no value, and other values are used as JSON text.
///
/// Region and credentials come from the environment: `AWS_REGION`, `AWS_ACCESS_KEY_ID`,
/// `AWS_SECRET_ACCESS_KEY` and `AWS_SESSION_TOKEN`, which Lambda sets. `AWS_ENDPOINT_URL` (or
/// `AWS_ENDPOINT_URL_SECRETS_MANAGER`) sets another endpoint. For anything else, set a
/// [client](Self::client).
///
/// The role needs `secretsmanager:GetSecretValue` on each secret, and, with one secret for each id,
/// `secretsmanager:BatchGetSecretValue` on `*`. A secret's ARN ends with a hyphen and six
/// characters after the name. If a policy names the ARN both with and without them
/// (`…:secret:NAME` and `…:secret:NAME-??????`), Secrets Manager reports a missing secret as
/// missing; otherwise it reports that access is denied.
#[derive(Debug, Default)]
#[must_use]
pub struct SecretsManager {
    layout: SecretLayout,
    client: OnceLock<Client>,
}

#[derive(Debug)]
enum SecretLayout {
    /// One secret for each id, named with a prefix and the id.
    Each { prefix: String },
    /// One secret, a JSON object with the ids as keys.
    Json { name: String },
}

impl Default for SecretLayout {
    fn default() -> Self {
        let prefix = String::new();
        Self::Each { prefix }
    }
}

impl SecretsManager {
    /// Reads one secret for each id, with the id as its name.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads one secret for each id, named with the prefix and the id.
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        let prefix = prefix.into();
        self.layout = SecretLayout::Each { prefix };
        self
    }

    /// Reads one secret for all ids, by name or ARN: a JSON object with the ids as keys.
    pub fn json(mut self, name: impl Into<String>) -> Self {
        let name = name.into();
        self.layout = SecretLayout::Json { name };
        self
    }

    /// Sets the client, for your own region, credentials or endpoint.
    pub fn client(mut self, client: Client) -> Self {
        self.client = OnceLock::from(client);
        self
    }

    fn client_or_init(&self) -> Result<&Client, StoreError> {
        aws::client(&self.client, "SECRETS_MANAGER", Client::new)
    }

    async fn read_each(&self, prefix: &str, ids: &[String]) -> Result<Vec<ReadResult>, StoreError> {
        let names = ids.iter().map(|id| format!("{prefix}{id}"));
        let names: Vec<String> = names.collect();
        let (valid, mut results) = valid_names(&names, is_name, "a secret");
        let mut page = None;
        // A response may have several pages, at most one for each secret.
        for _ in 0..valid.len() {
            let request = self.client_or_init()?.batch_get_secret_value();
            let request = request.set_secret_id_list(Some(valid.clone()));
            let response = match request.set_next_token(page).send().await {
                Ok(response) => response,
                Err(error) => {
                    let error = request_error(&error, "secretsmanager:BatchGetSecretValue", "*");
                    for name in &valid {
                        let missing = || Err(error.clone());
                        results.entry(name.clone()).or_insert_with(missing);
                    }
                    break;
                }
            };
            for value in response.secret_values.unwrap_or_default() {
                let (text, bytes) = (value.secret_string, value.secret_binary);
                let name = value.name.unwrap_or_default();
                let result = decode(&name, text, bytes).map(Some);
                if let Some(arn) = value.arn {
                    results.insert(arn, result.clone());
                }
                results.insert(name, result);
            }
            for error in response.errors.unwrap_or_default() {
                let name = error.secret_id.unwrap_or_default();
                let code = error.error_code.unwrap_or_default();
                let message = error.message.unwrap_or_default();
                let result = result_of_error(&name, &code, &message, self.region());
                results.insert(name, result);
            }
            page = response.next_token;
            if page.is_none() {
                break;
            }
        }
        Ok(in_order(&names, results, "Secrets Manager"))
    }

    async fn read_json(&self, name: &str, ids: &[String]) -> Result<Vec<ReadResult>, StoreError> {
        const ACTION: &str = "secretsmanager:GetSecretValue";
        let request = self.client_or_init()?.get_secret_value();
        let value = match request.secret_id(name).send().await {
            Ok(value) => value,
            Err(error) if is_absent(error.code().unwrap_or_default()) => {
                return Ok(ids.iter().map(|_| Ok(None)).collect());
            }
            Err(error) => return Err(request_error(&error, ACTION, &arn(self.region(), name))),
        };
        let text = decode(name, value.secret_string, value.secret_binary)?;
        // The parser's own error could quote the secret.
        let Ok(Value::Object(mut object)) = serde_json::from_str(text.expose()) else {
            let detail = format!("the secret '{name}' is not a JSON object");
            return Err(StoreError::undecodable(detail));
        };
        let result_of = |id: &String| {
            Ok(match object.remove(id) {
                None | Some(Value::Null) => None,
                Some(Value::String(text)) => Some(Secret::from(text)),
                Some(other) => Some(Secret::from(other.to_string())),
            })
        };
        Ok(ids.iter().map(result_of).collect())
    }

    fn region(&self) -> &str {
        let client = self.client.get();
        let region = client.and_then(|client| client.config().region());
        region.map_or("*", AsRef::as_ref)
    }
}

impl SecretStore for SecretsManager {
    fn read<'a>(&'a self, ids: &'a [String]) -> ReadFuture<'a> {
        Box::pin(async move {
            let results = match &self.layout {
                SecretLayout::Each { prefix } => self.read_each(prefix, ids).await,
                SecretLayout::Json { name } => self.read_json(name, ids).await,
            };
            results.unwrap_or_else(|error| vec![Err(error); ids.len()])
        })
    }

    fn location(&self, id: &str) -> String {
        match &self.layout {
            SecretLayout::Each { prefix } => {
                format!("the secret '{prefix}{id}' of AWS Secrets Manager")
            }
            SecretLayout::Json { name } => {
                format!("the key '{id}' of the secret '{name}' of AWS Secrets Manager")
            }
        }
    }

    /// Returns the limit of `BatchGetSecretValue`; all keys of a JSON object come at once.
    fn batch_size(&self) -> usize {
        match self.layout {
            SecretLayout::Each { .. } => 20,
            SecretLayout::Json { .. } => usize::MAX,
        }
    }
}

fn decode(name: &str, text: Option<String>, bytes: Option<Blob>) -> Result<Secret, StoreError> {
    if let Some(text) = text {
        return Ok(Secret::from(text));
    }
    let bytes = bytes.map(Blob::into_inner).unwrap_or_default();
    let text = String::from_utf8(bytes);
    text.map(Secret::from).map_err(|_| {
        StoreError::undecodable(format!(
            "the secret '{name}' holds bytes that are not UTF-8; store them as base64 text"
        ))
    })
}
