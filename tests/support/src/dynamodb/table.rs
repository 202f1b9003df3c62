//! A table, and the four operations on its items.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use serde_json::{Value, json};

use super::{
    Operation,
    condition::Condition,
    error::ApiError,
    item::{Attribute, Item, attributes, check_size, to_json},
    update::{Update, with_names},
};

/// The longest partition key, in bytes.
const LONGEST_KEY: usize = 2048;

/// The items, by the partition key `id`, a string. There is no sort key.
#[derive(Default)]
pub(super) struct Table {
    /// Held from the check of a condition until the write: no other request comes between.
    items: Mutex<BTreeMap<String, Item>>,
}

impl Table {
    fn items(&self) -> MutexGuard<'_, BTreeMap<String, Item>> {
        self.items.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Carries out a request on this table.
    pub(super) fn apply(&self, operation: Operation, body: &Value) -> Result<Value, ApiError> {
        check_parameters(operation, body)?;
        match operation {
            Operation::GetItem => {
                let id = id_of(&attributes(&body["Key"])?, true)?;
                let item = self.items().get(&id).map(to_json);
                Ok(item.map_or_else(|| json!({}), |item| json!({"Item": item})))
            }
            Operation::PutItem => {
                let item = attributes(&body["Item"])?;
                let id = id_of(&item, false)?;
                check_size(&item)?;
                self.write(body, id, |_, _| Ok(Some(item)))
            }
            Operation::DeleteItem => {
                let id = id_of(&attributes(&body["Key"])?, true)?;
                self.write(body, id, |_, _| Ok(None))
            }
            Operation::UpdateItem => {
                let id = id_of(&attributes(&body["Key"])?, true)?;
                let update = Update::parse(body)?;
                self.write(body, id.clone(), |current, values| {
                    let item = update.apply(id, current, values)?;
                    check_size(&item)?;
                    Ok(Some(item))
                })
            }
        }
    }

    /// Writes or deletes an item if the request's condition is met. `next` makes the new item of the
    /// current one and the request's values.
    fn write(
        &self,
        body: &Value,
        id: String,
        next: impl FnOnce(Option<&Item>, &Item) -> Result<Option<Item>, ApiError>,
    ) -> Result<Value, ApiError> {
        let values = match &body["ExpressionAttributeValues"] {
            Value::Null => Item::new(),
            values => attributes(values)?,
        };
        let Some(expression) = body["ConditionExpression"].as_str() else {
            // Every write of the library has a condition; without one, it could replace anything.
            return Err(ApiError::unsupported("a write without a condition"));
        };
        let condition = Condition::parse(&with_names(expression, body)?)?;
        let mut items = self.items();
        let current = items.get(&id);
        if !condition.is_met(current, &values) {
            let is_returned = body["ReturnValuesOnConditionCheckFailure"] == "ALL_OLD";
            let current = current.filter(|_| is_returned).cloned();
            return Err(ApiError::condition_failed(current));
        }
        match next(current, &values)? {
            Some(item) => items.insert(id, item),
            None => items.remove(&id),
        };
        Ok(json!({}))
    }

    /// Returns all items, by their ids.
    pub(super) fn all(&self) -> Vec<Value> {
        self.items().values().map(to_json).collect()
    }

    /// Changes an item.
    pub(super) fn change(&self, id: &str, change: impl FnOnce(&mut Value)) {
        let mut items = self.items();
        let item = items.get_mut(id).expect("there is such an item");
        let mut changed = to_json(item);
        change(&mut changed);
        *item = attributes(&changed).unwrap_or_else(|_| panic!("{changed} is no item"));
    }

    pub(super) fn len(&self) -> usize {
        self.items().len()
    }
}

/// Refuses parameters that this table would ignore.
fn check_parameters(operation: Operation, body: &Value) -> Result<(), ApiError> {
    let known: &[&str] = match operation {
        Operation::GetItem => &["TableName", "Key", "ConsistentRead"],
        Operation::PutItem => &[
            "TableName",
            "Item",
            "ConditionExpression",
            "ExpressionAttributeValues",
            "ReturnValuesOnConditionCheckFailure",
        ],
        Operation::UpdateItem => &[
            "TableName",
            "Key",
            "ConditionExpression",
            "ExpressionAttributeNames",
            "ExpressionAttributeValues",
            "UpdateExpression",
        ],
        Operation::DeleteItem => &[
            "TableName",
            "Key",
            "ConditionExpression",
            "ExpressionAttributeValues",
            "ReturnValuesOnConditionCheckFailure",
        ],
    };
    let object = body
        .as_object()
        .ok_or_else(|| ApiError::serialization("the body is no JSON object"))?;
    if let Some(unknown) = object.keys().find(|name| !known.contains(&&***name)) {
        return Err(ApiError::unsupported(format!("the parameter {unknown}")));
    }
    // Here every read is consistent, in DynamoDB only those that ask for it.
    if operation == Operation::GetItem && body["ConsistentRead"] != true {
        return Err(ApiError::unsupported("reads that are not consistent"));
    }
    Ok(())
}

/// Returns the partition key of an item, or of a key, which has no other attributes.
fn id_of(item: &Item, is_key: bool) -> Result<String, ApiError> {
    const MISMATCH: &str = "The provided key element does not match the schema";
    match item.get("id") {
        _ if is_key && item.len() != 1 => Err(ApiError::validation(MISMATCH)),
        Some(Attribute::Text(id)) if id.is_empty() => Err(ApiError::validation(
            "One or more parameter values are not valid. The AttributeValue for a key attribute \
             cannot contain an empty string value. Key: id",
        )),
        Some(Attribute::Text(id)) if id.len() > LONGEST_KEY => Err(ApiError::validation(
            "One or more parameter values were invalid: Size of hashkey has exceeded the maximum \
             size limit of 2048 bytes",
        )),
        Some(Attribute::Text(id)) => Ok(id.clone()),
        _ if is_key => Err(ApiError::validation(MISMATCH)),
        Some(_) => Err(ApiError::validation(
            "One or more parameter values were invalid: Type mismatch for key id",
        )),
        None => Err(ApiError::validation(
            "One or more parameter values were invalid: Missing the key id in the item",
        )),
    }
}
