//! AWS Secrets Manager.
//!
//! The client is made when a secret is first read, so that a function none of whose tools needs
//! one pays nothing.

mod refusal;

use std::{collections::HashMap, sync::OnceLock};

use aws_sdk_secretsmanager::{Client, error::ProvideErrorMetadata, primitives::Blob};
use serde_json::Value;

use super::{ReadFuture, ReadResult, SecretStore};
use crate::{Secret, StoreError, aws};
use refusal::{arn, is_absent, is_name, refused, unreadable};

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
/// Values may be strings, or binary as long as they are UTF-8. In a JSON object strings are taken
/// as they are, other values as their JSON text, and `null` as no value.
///
/// Region and credentials are those of the environment: `AWS_REGION`, `AWS_ACCESS_KEY_ID`,
/// `AWS_SECRET_ACCESS_KEY` and `AWS_SESSION_TOKEN`, which Lambda sets; `AWS_ENDPOINT_URL` (or
/// `AWS_ENDPOINT_URL_SECRETS_MANAGER`) leads elsewhere. For others make a
/// [client](Self::client).
///
/// The role needs `secretsmanager:GetSecretValue` on each secret, and, with one secret each,
/// `secretsmanager:BatchGetSecretValue` on `*`. A secret's ARN has a hyphen and six characters behind
/// its name; a policy that names it without them as well (`…:secret:NAME` and
/// `…:secret:NAME-??????`) lets Secrets Manager say that it is not there, where it would otherwise say
/// that it may not be read.
#[derive(Debug, Default)]
pub struct SecretsManager {
    form: SecretLayout,
    client: OnceLock<Client>,
}

#[derive(Debug)]
enum SecretLayout {
    /// One secret for each id, its name behind a prefix.
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
    /// One secret for each id, named like it.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// One secret for each id, its name the prefix and the id.
    #[must_use]
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        let prefix = prefix.into();
        self.form = SecretLayout::Each { prefix };
        self
    }

    /// One secret for all, a JSON object with the ids as keys. By name or ARN.
    #[must_use]
    pub fn json(mut self, name: impl Into<String>) -> Self {
        let name = name.into();
        self.form = SecretLayout::Json { name };
        self
    }

    /// Sets the client, for a region, credentials or an endpoint of one's own.
    #[must_use]
    pub fn client(mut self, client: Client) -> Self {
        self.client = OnceLock::from(client);
        self
    }

    fn made(&self) -> Result<&Client, StoreError> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        let config = aws::config("SECRETS_MANAGER")?;
        Ok(self.client.get_or_init(|| Client::new(&config)))
    }

    async fn each(&self, prefix: &str, ids: &[String]) -> Result<Vec<ReadResult>, StoreError> {
        let names = ids.iter().map(|id| format!("{prefix}{id}"));
        let names: Vec<String> = names.collect();
        // One name that is none would make Secrets Manager refuse the others with it.
        let wanted: Vec<_> = names.iter().filter(|name| is_name(name)).cloned().collect();
        let mut found: HashMap<String, ReadResult> = HashMap::new();
        let mut page = None;
        // An answer may be in parts, at most one for each secret.
        for _ in 0..wanted.len() {
            let request = self.made()?.batch_get_secret_value();
            let request = request.set_secret_id_list(Some(wanted.clone()));
            let answer = match request.set_next_token(page).send().await {
                Ok(answer) => answer,
                Err(error) => {
                    let error = refused(&error, "secretsmanager:BatchGetSecretValue", "*");
                    for name in &wanted {
                        let missing = || Err(error.clone());
                        found.entry(name.clone()).or_insert_with(missing);
                    }
                    break;
                }
            };
            for value in answer.secret_values.unwrap_or_default() {
                let (text, bytes) = (value.secret_string, value.secret_binary);
                let name = value.name.unwrap_or_default();
                let read = decoded(&name, text, bytes).map(Some);
                if let Some(arn) = value.arn {
                    found.insert(arn, read.clone());
                }
                found.insert(name, read);
            }
            for error in answer.errors.unwrap_or_default() {
                let name = error.secret_id.unwrap_or_default();
                let code = error.error_code.unwrap_or_default();
                let message = error.message.unwrap_or_default();
                let read = unreadable(&name, &code, &message, self.region());
                found.insert(name, read);
            }
            page = answer.next_token;
            if page.is_none() {
                break;
            }
        }
        let read = |name: &String| match found.remove(name) {
            Some(read) => read,
            None if is_name(name) => Err(StoreError::unavailable(
                "Secrets Manager left it out of its answer",
            )),
            None => Err(StoreError::undecodable(format!(
                "'{name}' is not a name that a secret can have"
            ))),
        };
        Ok(names.iter().map(read).collect())
    }

    async fn json_of(&self, name: &str, ids: &[String]) -> Result<Vec<ReadResult>, StoreError> {
        const ACTION: &str = "secretsmanager:GetSecretValue";
        let answer = self.made()?.get_secret_value().secret_id(name).send().await;
        let value = match answer {
            Ok(value) => value,
            Err(error) if is_absent(error.code().unwrap_or_default()) => {
                return Ok(ids.iter().map(|_| Ok(None)).collect());
            }
            Err(error) => return Err(refused(&error, ACTION, &arn(self.region(), name))),
        };
        let text = decoded(name, value.secret_string, value.secret_binary)?;
        // The parser's own error could quote what is secret.
        let Ok(Value::Object(mut object)) = serde_json::from_str(text.expose()) else {
            let detail = format!("the secret '{name}' is not a JSON object");
            return Err(StoreError::undecodable(detail));
        };
        let read = |id: &String| {
            Ok(match object.remove(id) {
                None | Some(Value::Null) => None,
                Some(Value::String(text)) => Some(Secret::from(text)),
                Some(other) => Some(Secret::from(other.to_string())),
            })
        };
        Ok(ids.iter().map(read).collect())
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
            let reads = match &self.form {
                SecretLayout::Each { prefix } => self.each(prefix, ids).await,
                SecretLayout::Json { name } => self.json_of(name, ids).await,
            };
            reads.unwrap_or_else(|error| vec![Err(error); ids.len()])
        })
    }

    fn location(&self, id: &str) -> String {
        match &self.form {
            SecretLayout::Each { prefix } => {
                format!("the secret '{prefix}{id}' of AWS Secrets Manager")
            }
            SecretLayout::Json { name } => {
                format!("the key '{id}' of the secret '{name}' of AWS Secrets Manager")
            }
        }
    }

    /// What one `BatchGetSecretValue` takes; all keys of a JSON object come at once.
    fn batch_size(&self) -> usize {
        match self.form {
            SecretLayout::Each { .. } => 20,
            SecretLayout::Json { .. } => usize::MAX,
        }
    }
}

fn decoded(name: &str, text: Option<String>, bytes: Option<Blob>) -> Result<Secret, StoreError> {
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
