//! In a table of DynamoDB.

use std::{
    collections::HashMap,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use aws_sdk_dynamodb::{
    operation::{delete_item::DeleteItemError, put_item::PutItemError},
    primitives::Blob,
    types::{AttributeValue, ReturnValuesOnConditionCheckFailure},
};

use super::Item;
use crate::{
    StoreError,
    aws::table::{Table, number, text},
    store_error::within,
};

/// How long the table may take to answer.
const TIMEOUT: Duration = Duration::from_secs(3);

pub(crate) struct DynamoDb(Table);

impl DynamoDb {
    pub(super) fn new(table: String) -> Self {
        Self(Table::new(table))
    }

    pub(super) async fn read(&self, id: &str) -> Result<Option<Item>, StoreError> {
        let request = self.0.client()?.get_item().table_name(&self.0.name);
        let request = request.key("id", text(id)).consistent_read(true).send();
        let read = within(TIMEOUT, Box::pin(request)).await?;
        let read = read.map_err(|error| self.0.error_of(&error, "GetItem"))?;
        Ok(read.item().and_then(item_of))
    }

    pub(super) async fn write(
        &self,
        id: &str,
        item: &Item,
        over: Option<u64>,
        now: SystemTime,
    ) -> Result<bool, StoreError> {
        let request = self.0.client()?.put_item().table_name(&self.0.name);
        let request = request.set_item(Some(attributes_of(id, item)));
        let request = match over {
            Some(version) => request
                .condition_expression("version = :version")
                .expression_attribute_values(":version", number(version)),
            None => request
                .condition_expression("attribute_not_exists(id) OR expires_at <= :now")
                .expression_attribute_values(":now", number(seconds(now))),
        };
        let request = request
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
            .send();
        let written = within(TIMEOUT, Box::pin(request)).await?;
        match written {
            Ok(_) => Ok(true),
            Err(error) => match error.as_service_error() {
                // A request that was repeated because its answer came late finds its own item.
                Some(PutItemError::ConditionalCheckFailedException(refused)) => {
                    let there = refused.item().and_then(item_of);
                    Ok(there.is_some_and(|there| there.sealed == item.sealed))
                }
                _ => Err(self.0.error_of(&error, "PutItem")),
            },
        }
    }

    pub(super) async fn remove(&self, id: &str, version: u64) -> Result<bool, StoreError> {
        let request = self.0.client()?.delete_item().table_name(&self.0.name);
        let request = request
            .key("id", text(id))
            .condition_expression("version = :version")
            .expression_attribute_values(":version", number(version))
            .send();
        let removed = within(TIMEOUT, Box::pin(request)).await?;
        match removed {
            Ok(_) => Ok(true),
            Err(error) => match error.as_service_error() {
                Some(DeleteItemError::ConditionalCheckFailedException(_)) => Ok(false),
                _ => Err(self.0.error_of(&error, "DeleteItem")),
            },
        }
    }
}

fn attributes_of(id: &str, item: &Item) -> HashMap<String, AttributeValue> {
    HashMap::from([
        ("id".to_owned(), text(id)),
        ("version".to_owned(), number(item.version)),
        ("key_id".to_owned(), text(&item.key_id)),
        (
            "sealed".to_owned(),
            AttributeValue::B(Blob::new(item.sealed.clone())),
        ),
        ("expires_at".to_owned(), number(seconds(item.expires_at))),
    ])
}

fn item_of(attributes: &HashMap<String, AttributeValue>) -> Option<Item> {
    let number = |name: &str| attributes.get(name)?.as_n().ok()?.parse::<u64>().ok();
    Some(Item {
        version: number("version")?,
        key_id: attributes.get("key_id")?.as_s().ok()?.clone(),
        sealed: attributes.get("sealed")?.as_b().ok()?.clone().into_inner(),
        expires_at: UNIX_EPOCH.checked_add(Duration::from_secs(number("expires_at")?))?,
        owner: None,
    })
}

/// As time to live has it; parts of a second left out.
fn seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs()
}
