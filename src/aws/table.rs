//! A table of DynamoDB with the partition key `id`.

use std::sync::OnceLock;

use aws_sdk_dynamodb::{
    Client,
    error::{ProvideErrorMetadata, SdkError},
    types::AttributeValue,
};

use crate::StoreError;

/// A table, and the client that asks for it, made by the first request.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) name: String,
    client: OnceLock<Client>,
}

impl Table {
    pub(crate) fn new(name: String) -> Self {
        let client = OnceLock::new();
        Self { name, client }
    }

    /// With a client of the owner's.
    pub(crate) fn asked_by(self, client: Client) -> Self {
        let client = OnceLock::from(client);
        Self { client, ..self }
    }

    pub(crate) fn client(&self) -> Result<&Client, StoreError> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        let config = super::config("DYNAMODB")?;
        Ok(self.client.get_or_init(|| Client::new(&config)))
    }

    /// What is wrong with a request, and what to do about it.
    pub(crate) fn error_of<E: ProvideErrorMetadata>(
        &self,
        error: &SdkError<E>,
        action: &str,
    ) -> StoreError {
        let table = &self.name;
        let own = |code: &str, _: &str| {
            Some(StoreError::denied(match code {
                "AccessDeniedException" => {
                    format!("allow dynamodb:{action} on the table '{table}'")
                }
                "ResourceNotFoundException" => format!("there is no table '{table}' in DynamoDB"),
                "ValidationException" => format!(
                    "the table '{table}' has to have the partition key 'id', a string, and no \
                     other, and a record no more than 400 KB"
                ),
                _ => return None,
            }))
        };
        super::error_of("DynamoDB", error, own)
    }
}

pub(crate) fn text(value: &str) -> AttributeValue {
    AttributeValue::S(value.to_owned())
}

pub(crate) fn number(value: u64) -> AttributeValue {
    AttributeValue::N(value.to_string())
}
