//! Calls remembered in a table of DynamoDB, shared by all instances of a function.

use std::{
    collections::HashMap,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use aws_sdk_dynamodb::{
    Client,
    operation::{delete_item::DeleteItemError, put_item::PutItemError},
    primitives::Blob,
    types::{AttributeValue, ReturnValuesOnConditionCheckFailure},
};

use super::{CallStore, Doing, Record, State};
use crate::{
    StoreError,
    aws::table::{Table, number, text},
};

/// A table of DynamoDB, for [`Idempotency::in_store`](super::Idempotency::in_store).
///
/// ```
/// use lambda_tools::idempotency::{DynamoDb, Idempotency};
///
/// let remembered = Idempotency::in_store(DynamoDb::new("calls"));
/// ```
///
/// The table has the partition key `id`, a string, and no sort key. `expires_at` holds seconds
/// since 1970: switch on time to live for it, so that DynamoDB deletes what has expired. Whether a
/// record has expired is never left to that.
///
/// Region, credentials and endpoint are those of the environment, as for
/// [`SecretsManager`](crate::secrets), with `AWS_ENDPOINT_URL_DYNAMODB` for an endpoint of its own.
/// The role needs `dynamodb:PutItem` and `dynamodb:DeleteItem` on the table.
#[derive(Debug)]
pub struct DynamoDb(Table);

/// An item may have 400 KB, names and all else included.
const LARGEST_OUTCOME: usize = 400 * 1024 - 4096;

type Item = HashMap<String, AttributeValue>;

impl DynamoDb {
    /// A table by its name or ARN.
    #[must_use]
    pub fn new(table: impl Into<String>) -> Self {
        Self(Table::new(table.into()))
    }

    /// Sets the client, for a region, credentials or an endpoint of one's own.
    #[must_use]
    pub fn client(self, client: Client) -> Self {
        Self(self.0.asked_by(client))
    }
}

impl CallStore for DynamoDb {
    fn claim<'a>(
        &'a self,
        key: &'a str,
        record: &'a Record,
        now: SystemTime,
    ) -> Doing<'a, Option<Record>> {
        Box::pin(async move {
            let request = self.0.client()?.put_item().table_name(&self.0.name);
            let written = request
                .set_item(Some(item_of(key, record)))
                .condition_expression("attribute_not_exists(id) OR free_at <= :now")
                .expression_attribute_values(":now", number(millis(now)))
                // The record that stands in the way comes with the refusal, without a second
                // request.
                .return_values_on_condition_check_failure(
                    ReturnValuesOnConditionCheckFailure::AllOld,
                )
                .send()
                .await;
            match written {
                Ok(_) => Ok(None),
                Err(error) => match error.as_service_error() {
                    Some(PutItemError::ConditionalCheckFailedException(refused)) => {
                        let held = refused.item().and_then(record_of);
                        let unreadable = || {
                            StoreError::undecodable(format!(
                                "the table '{}' holds something else under this key",
                                self.0.name
                            ))
                        };
                        held.map(Some).ok_or_else(unreadable)
                    }
                    _ => Err(self.0.error_of(&error, "PutItem")),
                },
            }
        })
    }

    fn finish<'a>(&'a self, key: &'a str, record: &'a Record) -> Doing<'a, bool> {
        Box::pin(async move {
            let request = self.0.client()?.put_item().table_name(&self.0.name);
            let written = request
                .set_item(Some(item_of(key, record)))
                .condition_expression("claim = :claim")
                .expression_attribute_values(":claim", text(&record.claim))
                .send()
                .await;
            match written {
                Ok(_) => Ok(true),
                Err(error) => match error.as_service_error() {
                    Some(PutItemError::ConditionalCheckFailedException(_)) => Ok(false),
                    _ => Err(self.0.error_of(&error, "PutItem")),
                },
            }
        })
    }

    fn release<'a>(&'a self, key: &'a str, claim: &'a str) -> Doing<'a, ()> {
        Box::pin(async move {
            let request = self.0.client()?.delete_item().table_name(&self.0.name);
            let deleted = request
                .key("id", text(key))
                .condition_expression("claim = :claim")
                .expression_attribute_values(":claim", text(claim))
                .send()
                .await;
            match deleted {
                Ok(_) => Ok(()),
                Err(error) => match error.as_service_error() {
                    Some(DeleteItemError::ConditionalCheckFailedException(_)) => Ok(()),
                    _ => Err(self.0.error_of(&error, "DeleteItem")),
                },
            }
        })
    }

    fn largest_outcome(&self) -> usize {
        LARGEST_OUTCOME
    }

    /// Opens the connection, and finds out whether the table is there.
    fn warm_up(&self) -> Doing<'_, ()> {
        self.release("no call", "no claim")
    }
}

fn item_of(key: &str, record: &Record) -> Item {
    let mut item = Item::from([
        ("id".to_owned(), text(key)),
        ("claim".to_owned(), text(&record.claim)),
        ("fingerprint".to_owned(), text(&record.fingerprint)),
        (
            "at_most_once".to_owned(),
            AttributeValue::Bool(record.at_most_once),
        ),
        ("free_at".to_owned(), number(millis(record.free_at))),
        // Time to live is in seconds; not a moment too early.
        (
            "expires_at".to_owned(),
            number(millis(record.expires_at).div_ceil(1000)),
        ),
    ]);
    match &record.state {
        State::Running { until } => {
            item.insert("until".to_owned(), number(millis(*until)));
        }
        State::Finished(outcome) => {
            let outcome = AttributeValue::B(Blob::new(outcome.clone()));
            item.insert("outcome".to_owned(), outcome);
        }
        State::Ran => {}
    }
    item
}

fn record_of(item: &Item) -> Option<Record> {
    let text = |name: &str| item.get(name)?.as_s().ok().cloned();
    let number = |name: &str| item.get(name)?.as_n().ok()?.parse::<u64>().ok();
    let time = |name: &str| number(name).and_then(|ms| after_1970(Duration::from_millis(ms)));
    let outcome = item.get("outcome").and_then(|outcome| outcome.as_b().ok());
    let at_most_once = item.get("at_most_once").and_then(|it| it.as_bool().ok());
    let (until, free_at) = (time("until"), time("free_at")?);
    Some(Record {
        claim: text("claim")?,
        fingerprint: text("fingerprint")?,
        owner: String::new(),
        // Older items do not say so; their other calls were free as soon as they were over.
        at_most_once: at_most_once
            .copied()
            .unwrap_or_else(|| until.is_some_and(|until| until < free_at)),
        state: match (outcome, until) {
            (Some(outcome), _) => State::Finished(outcome.clone().into_inner()),
            (None, Some(until)) => State::Running { until },
            (None, None) => State::Ran,
        },
        free_at,
        expires_at: after_1970(Duration::from_secs(number("expires_at")?))?,
    })
}

fn millis(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

fn after_1970(time: Duration) -> Option<SystemTime> {
    UNIX_EPOCH.checked_add(time)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_millis(ms)
    }

    fn record(state: State, free_at: u64, at_most_once: bool) -> Record {
        Record {
            claim: "claim".to_owned(),
            fingerprint: "print".to_owned(),
            owner: String::new(),
            at_most_once,
            state,
            free_at: at(free_at),
            expires_at: at(9000),
        }
    }

    #[test]
    fn records_come_back_without_their_owner() {
        let running = || State::Running { until: at(1001) };
        for state in [running(), State::Ran, State::Finished(vec![0, 255])] {
            for at_most_once in [false, true] {
                let record = record(state.clone(), 3001, at_most_once);
                let owned = Record {
                    owner: "owner".to_owned(),
                    ..record.clone()
                };
                assert_eq!(record_of(&item_of("key", &owned)), Some(record));
            }
        }
    }

    #[test]
    fn items_without_a_policy_can_be_read() {
        let until = at(1000);
        for (state, free_at, at_most_once) in [
            (State::Running { until }, 1000, false),
            (State::Running { until }, 9000, true),
            (State::Finished(vec![1]), 9000, false),
            (State::Ran, 9000, false),
        ] {
            let record = record(state, free_at, at_most_once);
            let mut item = item_of("key", &record);
            item.remove("at_most_once").unwrap();
            assert_eq!(record_of(&item), Some(record));
        }
    }
}
