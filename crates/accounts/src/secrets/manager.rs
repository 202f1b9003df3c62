//! AWS Secrets Manager.
//!
//! The client is created when a secret is first read, so that a function whose tools need no secret
//! pays nothing.

use std::sync::OnceLock;

use aws_sdk_secretsmanager::{
    Client,
    error::{ProvideErrorMetadata, SdkError},
    primitives::Blob,
};
use serde_json::Value;

use super::{
    ReadFuture, ReadResult, SecretStore,
    batch::{self, in_order, is_name, valid_names},
};
use crate::{Secret, StoreError, aws};

const SERVICE: &str = "AWS Secrets Manager";

/// Secrets in AWS Secrets Manager, for [`Secrets::from_store`](super::Secrets::from_store).
///
/// ```
/// # use lambda_tools_accounts as lambda_tools;
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
    /// With the id, the name of the secret of each id.
    prefix: String,
    /// The name of one secret instead: a JSON object with the ids as keys.
    json: Option<String>,
    client: OnceLock<Client>,
}

impl SecretsManager {
    /// Reads one secret for each id, with the id as its name.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads one secret for each id, named with the prefix and the id.
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self.json = None;
        self
    }

    /// Reads one secret for all ids, by name or ARN: a JSON object with the ids as keys.
    pub fn json(mut self, name: impl Into<String>) -> Self {
        self.json = Some(name.into());
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

    async fn read_each(&self, ids: &[String]) -> Result<Vec<ReadResult>, StoreError> {
        let names = ids.iter().map(|id| format!("{}{id}", self.prefix));
        let names: Vec<String> = names.collect();
        let (valid, mut results) = valid_names(&names, is_name, "a secret");
        let mut otherwise = StoreError::unavailable("Secrets Manager returned no result for it");
        let mut page = None;
        // A response may have several pages, at most one for each secret.
        for _ in 0..valid.len() {
            let request = self.client_or_init()?.batch_get_secret_value();
            let request = request.set_secret_id_list(Some(valid.clone()));
            let response = match request.set_next_token(page).send().await {
                Ok(response) => response,
                Err(error) => {
                    otherwise = request_error(&error, "secretsmanager:BatchGetSecretValue", "*");
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
        Ok(in_order(&names, results, &otherwise))
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
            let results = match &self.json {
                None => self.read_each(ids).await,
                Some(name) => self.read_json(name, ids).await,
            };
            results.unwrap_or_else(|error| vec![Err(error); ids.len()])
        })
    }

    fn location(&self, id: &str) -> String {
        match &self.json {
            None => format!("the secret '{}{id}' of {SERVICE}", self.prefix),
            Some(name) => format!("the key '{id}' of the secret '{name}' of {SERVICE}"),
        }
    }

    /// Returns the limit of `BatchGetSecretValue`; all keys of a JSON object come at once.
    fn batch_size(&self) -> usize {
        match self.json {
            None => 20,
            Some(_) => usize::MAX,
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

/// Returns true if the secret is missing, is marked for deletion, or has no current version.
fn is_absent(code: &str) -> bool {
    matches!(
        code,
        "ResourceNotFoundException" | "InvalidRequestException"
    )
}

/// Returns the result for one secret of a batch, from its error.
fn result_of_error(name: &str, code: &str, message: &str, region: &str) -> ReadResult {
    if is_absent(code) {
        return Ok(None);
    }
    let resource = arn(region, name);
    let error = specific_error(code, message, "secretsmanager:GetSecretValue", &resource);
    Err(error.unwrap_or_else(|| aws::error_of_code(SERVICE, code)))
}

/// Returns the error for a failed request.
fn request_error<E: ProvideErrorMetadata>(
    error: &SdkError<E>,
    action: &str,
    resource: &str,
) -> StoreError {
    let specific = |code: &str, message: &str| specific_error(code, message, action, resource);
    aws::error_of(SERVICE, error, specific)
}

fn specific_error(code: &str, message: &str, action: &str, resource: &str) -> Option<StoreError> {
    // Access is checked before existence, and a missing secret has an ARN without the six characters.
    let hint = match resource {
        "*" => "",
        _ => "; if that is allowed, there is no such secret",
    };
    let is_by_iam = !message.contains("KMS");
    let remedy = is_by_iam.then(|| format!("allow {action} on {resource}{hint}"));
    batch::refusal(SERVICE, code, resource, remedy)
}

/// Returns the resource that a policy must name: Secrets Manager appends six characters to a name.
fn arn(region: &str, name: &str) -> String {
    let resource = format!("secret:{name}-??????");
    batch::arn("secretsmanager", region, name, &resource)
}
