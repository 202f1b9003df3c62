//! The OpenTool document: what a server has to call.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::tool::requirement::null_is_default;

/// An OpenTool document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct OpenToolDocument {
    /// The version of the format.
    pub opentool: String,
    /// What the server says of itself.
    pub info: DocumentInfo,
    /// Where it is, where it says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<ServerUrl>,
    /// What there is to call.
    #[serde(default, deserialize_with = "null_is_default")]
    pub functions: Vec<FunctionModel>,
    /// Schemas that others refer to, by name.
    #[serde(
        default,
        deserialize_with = "null_is_default",
        skip_serializing_if = "IndexMap::is_empty"
    )]
    pub schemas: IndexMap<String, ValueSchema>,
}

/// What a server says of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct DocumentInfo {
    /// Its name.
    pub title: String,
    /// What it is for.
    #[serde(default, deserialize_with = "null_is_default")]
    pub description: String,
    /// `x.y.z`.
    pub version: String,
}

/// Where a server is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ServerUrl {
    /// Its URL.
    pub url: String,
    /// What it is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// Something to call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FunctionModel {
    /// Its name, by which it is called.
    pub name: String,
    /// What it does.
    #[serde(default, deserialize_with = "null_is_default")]
    pub description: String,
    /// What it takes.
    #[serde(default, deserialize_with = "null_is_default")]
    pub parameters: Vec<Parameter>,
    /// What it gives.
    #[serde(rename = "return", skip_serializing_if = "Option::is_none")]
    pub returns: Option<ReturnValue>,
}

/// What a function takes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Parameter {
    /// Its name.
    pub name: String,
    /// What it means.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// What it looks like.
    pub schema: ValueSchema,
    /// Whether a call must have it.
    #[serde(default, deserialize_with = "null_is_default")]
    pub required: bool,
}

/// What a function gives.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ReturnValue {
    /// Its name.
    pub name: String,
    /// What it means.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// What it looks like.
    pub schema: ValueSchema,
}

/// What a value looks like.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ValueSchema {
    /// `boolean`, `integer`, `number`, `string`, `array` or `object`; empty beside a reference.
    #[serde(
        rename = "type",
        default,
        deserialize_with = "null_is_default",
        skip_serializing_if = "String::is_empty"
    )]
    pub kind: String,
    /// What it means.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// An object's properties.
    #[serde(
        default,
        deserialize_with = "null_is_default",
        skip_serializing_if = "IndexMap::is_empty"
    )]
    pub properties: IndexMap<String, ValueSchema>,
    /// What stands in an array.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub items: Option<Box<ValueSchema>>,
    /// The values there are.
    #[serde(
        rename = "enum",
        default,
        deserialize_with = "null_is_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub values: Vec<Value>,
    /// The properties that have to be there.
    #[serde(
        default,
        deserialize_with = "null_is_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub required: Vec<String>,
    /// `#/schemas/NAME`: the schema stands in the document's `schemas`.
    #[serde(rename = "$ref", skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
}
