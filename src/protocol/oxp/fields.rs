//! The fields of a request's objects, read by hand: an error has to name the invalid field.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::{Secret, json::JsonObject, protocol::refusal::Refusal, text::LONGEST_ID};

/// The maximum length, in bytes, of a secret or token in a call: redaction searches for each in
/// many encodings.
const LONGEST_SECRET: usize = 16 * 1024;

/// An object whose fields are taken out one by one, and its path in the body. They are so few that
/// comparing their names costs less than hashing one.
pub(super) struct ObjectFields<'a> {
    fields: Vec<(String, Value)>,
    pub(super) path: &'a str,
}

impl<'a> ObjectFields<'a> {
    pub(super) fn of(fields: JsonObject, path: &'a str) -> Self {
        let fields = fields.into_iter().collect();
        Self { fields, path }
    }

    /// Takes a field. `null` is what some clients send for an absent one.
    fn take(&mut self, name: &str) -> Option<Value> {
        let index = self.fields.iter().position(|(it, _)| it == name)?;
        let (_, value) = self.fields.swap_remove(index);
        Some(value).filter(|it| !it.is_null())
    }

    pub(super) fn text(&mut self, name: &str) -> Result<Option<String>, Refusal> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(self.invalid_field(name, "must be a string")),
        }
    }

    /// Reads a string that must be there.
    pub(super) fn required(&mut self, name: &str) -> Result<String, Refusal> {
        let text = self.text(name)?;
        text.ok_or_else(|| self.invalid_field(name, "is missing"))
    }

    /// Reads a string whose length is limited because it is stored, hashed or echoed.
    pub(super) fn id(&mut self, name: &str) -> Result<Option<String>, Refusal> {
        let id = self.text(name)?;
        if id.as_ref().is_some_and(|id| id.len() > LONGEST_ID) {
            let problem = format!("must have at most {LONGEST_ID} bytes");
            return Err(self.invalid_field(name, &problem));
        }
        Ok(id)
    }

    pub(super) fn object(&mut self, name: &str) -> Result<Option<JsonObject>, Refusal> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::Object(object)) => Ok(Some(object)),
            Some(_) => Err(self.invalid_field(name, "must be an object")),
        }
    }

    /// Reads a list of `{"id": …, VALUE: …}`.
    pub(super) fn secrets(
        &mut self,
        name: &str,
        value: &str,
    ) -> Result<BTreeMap<String, Secret>, Refusal> {
        let items = match self.take(name) {
            None => return Ok(BTreeMap::new()),
            Some(Value::Array(items)) => items,
            Some(_) => return Err(self.invalid_field(name, "must be an array")),
        };
        let mut secrets = BTreeMap::new();
        for (index, item) in items.into_iter().enumerate() {
            let path = format!("{}{name}[{index}]", self.path);
            let Value::Object(item) = item else {
                return Err(invalid_field(&path, "must be an object"));
            };
            let path = path + ".";
            let mut item = ObjectFields::of(item, &path);
            let (id, secret) = (item.required("id")?, item.required(value)?);
            if secret.len() > LONGEST_SECRET {
                let problem = format!("must have at most {LONGEST_SECRET} bytes");
                return Err(item.invalid_field(value, &problem));
            }
            if secrets.insert(id, secret.into()).is_some() {
                return Err(item.invalid_field("id", "occurs twice"));
            }
        }
        Ok(secrets)
    }

    fn invalid_field(&self, name: &str, problem: &str) -> Refusal {
        invalid_field(&format!("{}{name}", self.path), problem)
    }
}

fn invalid_field(path: &str, problem: &str) -> Refusal {
    not_understood(format!("'{path}' {problem}."))
}

/// Refuses a request that is not one of OXP.
pub(super) fn not_understood(detail: impl Into<String>) -> Refusal {
    Refusal::malformed("The request cannot be understood", detail)
}
