//! Records in a DynamoDB table, shared by all instances of a function.

use std::{
    collections::HashMap,
    sync::OnceLock,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use aws_sdk_dynamodb::{
    Client,
    error::{ProvideErrorMetadata, SdkError},
    operation::put_item::PutItemError,
    primitives::Blob,
    types::{AttributeValue, ReturnValuesOnConditionCheckFailure},
};

use super::{Count, Field, Over, PutOutcome, Record, Store, StoreFuture, Write, new_version};
use crate::{StoreError, clock::epoch_millis as millis};

/// A DynamoDB table, for [`Idempotency::in_store`](crate::idempotency::Idempotency::in_store).
///
/// ```
/// # use lambda_tools_records as lambda_tools;
/// use lambda_tools::idempotency::{DynamoDb, Idempotency};
///
/// let idempotency = Idempotency::in_store(DynamoDb::new("calls"));
/// ```
///
/// The table has the partition key `id`, a string, and no sort key. `expires_at` holds seconds
/// since 1970: enable time to live for it, so that DynamoDB deletes expired records. Correctness
/// does not depend on that deletion.
///
/// The outcome of a call may be up to 396 KiB, because DynamoDB limits an item to 400 KB. Of a call
/// with a larger outcome, only the fact that it ran is kept.
///
/// Region, credentials and endpoint come from the environment, as for
/// `lambda_tools::secrets::SecretsManager`; `AWS_ENDPOINT_URL_DYNAMODB` sets the endpoint of DynamoDB
/// alone. The role needs `dynamodb:PutItem` and `dynamodb:DeleteItem` on the table, and
/// `dynamodb:GetItem` if the table holds challenges and grants, or calls that become tasks, and
/// `dynamodb:UpdateItem` if calls have [quotas](crate::quotas).
#[derive(Debug)]
pub struct DynamoDb {
    table: String,
    /// Created by the first request.
    client: OnceLock<Client>,
}

/// An item may be up to 400 KB (of 1024 bytes each), including names and overhead.
const LARGEST_FIELD: usize = 400 * 1024 - 4096;

type Item = HashMap<String, AttributeValue>;

impl DynamoDb {
    /// Uses a table, by its name or ARN.
    #[must_use]
    pub fn new(table: impl Into<String>) -> Self {
        Self {
            table: table.into(),
            client: OnceLock::new(),
        }
    }

    /// Sets the client, for your own region, credentials or endpoint.
    #[must_use]
    pub fn client(self, client: Client) -> Self {
        let client = OnceLock::from(client);
        Self { client, ..self }
    }

    fn client_or_init(&self) -> Result<&Client, StoreError> {
        crate::aws::client(&self.client, "DYNAMODB", Client::new)
    }

    fn decode(&self, item: &Item) -> Result<Record, StoreError> {
        let undecodable = || {
            StoreError::undecodable(format!(
                "the table '{}' holds another kind of item under this key",
                self.table
            ))
        };
        record_of(item).ok_or_else(undecodable)
    }

    /// Returns true if a write was carried out, and false if its condition was not met.
    fn is_done<T, E: ProvideErrorMetadata>(
        &self,
        response: Result<T, SdkError<E>>,
        action: &str,
    ) -> Result<bool, StoreError> {
        match response {
            Ok(_) => Ok(true),
            Err(error) if error.code() == Some("ConditionalCheckFailedException") => Ok(false),
            Err(error) => Err(self.error_of(&error, action)),
        }
    }

    /// Returns the error for a failed request, with its remedy.
    fn error_of<E: ProvideErrorMetadata>(&self, error: &SdkError<E>, action: &str) -> StoreError {
        let table = &self.table;
        let specific = |code: &str, _: &str| {
            Some(StoreError::denied(match code {
                "AccessDeniedException" => {
                    format!("allow dynamodb:{action} on the table '{table}'")
                }
                "ResourceNotFoundException" => format!("there is no table '{table}' in DynamoDB"),
                "ValidationException" => format!(
                    "the table '{table}' must have the string 'id' as its partition key and no sort \
                     key, and a record may be at most 400 KB"
                ),
                _ => return None,
            }))
        };
        crate::aws::error_of("DynamoDB", error, specific)
    }
}

impl Store for DynamoDb {
    fn get<'a>(&'a self, id: &'a str) -> StoreFuture<'a, Option<Record>> {
        Box::pin(async move {
            let request = self.client_or_init()?.get_item().table_name(&self.table);
            let request = request.key("id", text(id)).consistent_read(true);
            let response = request.send().await;
            let response = response.map_err(|error| self.error_of(&error, "GetItem"))?;
            response.item().map(|item| self.decode(item)).transpose()
        })
    }

    fn put<'a>(&'a self, write: Write<'a>) -> StoreFuture<'a, PutOutcome> {
        Box::pin(async move {
            let request = self.client_or_init()?.put_item().table_name(&self.table);
            let request = request
                .set_item(Some(item_of(write.id, write.record)))
                // If the condition is not met, this returns the current record without a second
                // request.
                .return_values_on_condition_check_failure(
                    ReturnValuesOnConditionCheckFailure::AllOld,
                );
            let request = match write.over {
                Over::Version(version) => request
                    .condition_expression("version = :version")
                    .expression_attribute_values(":version", number(version)),
                Over::Nothing => request
                    .condition_expression(
                        "attribute_not_exists(id) OR free_at <= :now \
                         OR (attribute_not_exists(free_at) AND expires_at <= :seconds)",
                    )
                    .expression_attribute_values(":now", number(millis(write.now)))
                    .expression_attribute_values(":seconds", number(millis(write.now) / 1000)),
            };
            match request.send().await {
                Ok(_) => Ok(PutOutcome::Written),
                Err(error) => match error.as_service_error() {
                    Some(PutItemError::ConditionalCheckFailedException(conflict)) => {
                        let current = conflict.item().map(|item| self.decode(item));
                        Ok(PutOutcome::Conflict(current.transpose()?))
                    }
                    _ => Err(self.error_of(&error, "PutItem")),
                },
            }
        })
    }

    fn delete<'a>(&'a self, id: &'a str, version: u64) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            let request = self.client_or_init()?.delete_item().table_name(&self.table);
            let response = request
                .key("id", text(id))
                .condition_expression("version = :version")
                .expression_attribute_values(":version", number(version))
                .send()
                .await;
            self.is_done(response, "DeleteItem").map(drop)
        })
    }

    fn count<'a>(&'a self, count: Count<'a>) -> StoreFuture<'a, bool> {
        Box::pin(async move {
            if count.limit == 0 {
                return Ok(false);
            }
            let request = self.client_or_init()?.update_item().table_name(&self.table);
            let response = request
                .key("id", text(count.id))
                .update_expression("ADD #count :one SET expires_at = :expires, version = :version")
                .condition_expression("attribute_not_exists(#count) OR #count < :limit")
                .expression_attribute_names("#count", Count::FIELD)
                .expression_attribute_values(":one", number(1))
                .expression_attribute_values(":limit", number(count.limit))
                .expression_attribute_values(":version", number(new_version()))
                .expression_attribute_values(":expires", seconds(count.expires_at))
                .send()
                .await;
            self.is_done(response, "UpdateItem")
        })
    }

    /// Opens the connection, and checks that the table exists.
    fn warm_up(&self) -> StoreFuture<'_, ()> {
        self.delete("no record", 0)
    }

    fn largest_field(&self) -> usize {
        LARGEST_FIELD
    }
}

fn item_of(id: &str, record: &Record) -> Item {
    let mut item = Item::from([
        ("id".to_owned(), text(id)),
        ("version".to_owned(), number(record.version)),
        ("expires_at".to_owned(), seconds(record.expires_at)),
    ]);
    if let Some(free_at) = record.free_at {
        item.insert("free_at".to_owned(), number(millis(free_at)));
    }
    let fields = record.fields.iter();
    item.extend(fields.map(|(name, field)| {
        let value = match field {
            Field::Text(it) => text(it),
            Field::Number(it) => number(*it),
            Field::Bytes(it) => AttributeValue::B(Blob::new(it.clone())),
        };
        (name.clone().into_owned(), value)
    }));
    item
}

/// Returns `None` for an item that this library did not write.
fn record_of(item: &Item) -> Option<Record> {
    const RESERVED: [&str; 4] = ["id", "version", "free_at", "expires_at"];
    let number = |name: &str| item.get(name)?.as_n().ok()?.parse::<u64>().ok();
    let free_at = number("free_at").map(Duration::from_millis);
    let expires_at = Duration::from_secs(number("expires_at")?);
    let fields = item
        .iter()
        .filter(|(name, _)| !RESERVED.contains(&&***name));
    let fields = fields.filter_map(|(name, value)| {
        let field = match value {
            AttributeValue::S(it) => Field::Text(it.clone()),
            AttributeValue::N(it) => Field::Number(it.parse().ok()?),
            AttributeValue::B(it) => Field::Bytes(it.clone().into_inner()),
            _ => return None,
        };
        Some((name.clone().into(), field))
    });
    Some(Record {
        version: number("version")?,
        fields: fields.collect(),
        free_at: free_at.and_then(|it| UNIX_EPOCH.checked_add(it)),
        expires_at: UNIX_EPOCH.checked_add(expires_at)?,
    })
}

/// Returns a time to live, which is in seconds; rounded up, so that nothing is deleted too early.
fn seconds(time: SystemTime) -> AttributeValue {
    number(millis(time).div_ceil(1000))
}

fn text(value: &str) -> AttributeValue {
    AttributeValue::S(value.to_owned())
}

fn number(value: u64) -> AttributeValue {
    AttributeValue::N(value.to_string())
}
