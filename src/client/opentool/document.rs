//! The OpenTool document: a server's functions.

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
    /// The server's description.
    pub info: DocumentInfo,
    /// The server's URL, if the document names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<ServerUrl>,
    /// The functions that can be called.
    #[serde(default, deserialize_with = "null_is_default")]
    pub functions: Vec<FunctionModel>,
    /// Schemas that other schemas reference, by name.
    #[serde(
        default,
        deserialize_with = "null_is_default",
        skip_serializing_if = "IndexMap::is_empty"
    )]
    pub schemas: IndexMap<String, ValueSchema>,
}

/// A server's description of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct DocumentInfo {
    /// The server's name.
    pub title: String,
    /// The server's purpose.
    #[serde(default, deserialize_with = "null_is_default")]
    pub description: String,
    /// `x.y.z`.
    pub version: String,
}

/// The URL of a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ServerUrl {
    /// The URL.
    pub url: String,
    /// The server's purpose.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// A function that can be called.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FunctionModel {
    /// The function's name, as used in calls.
    pub name: String,
    /// The function's purpose.
    #[serde(default, deserialize_with = "null_is_default")]
    pub description: String,
    /// The parameters.
    #[serde(default, deserialize_with = "null_is_default")]
    pub parameters: Vec<Parameter>,
    /// The return value.
    #[serde(rename = "return", skip_serializing_if = "Option::is_none")]
    pub returns: Option<ReturnValue>,
}

/// A parameter of a function.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Parameter {
    /// The parameter's name.
    pub name: String,
    /// The parameter's meaning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The parameter's schema.
    pub schema: ValueSchema,
    /// True if the parameter is required.
    #[serde(default, deserialize_with = "null_is_default")]
    pub required: bool,
}

/// The return value of a function.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ReturnValue {
    /// The value's name.
    pub name: String,
    /// The value's meaning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The value's schema.
    pub schema: ValueSchema,
}

/// The schema of a value.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ValueSchema {
    /// `boolean`, `integer`, `number`, `string`, `array` or `object`; empty for a reference.
    #[serde(
        rename = "type",
        default,
        deserialize_with = "null_is_default",
        skip_serializing_if = "String::is_empty"
    )]
    pub kind: String,
    /// The value's meaning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// An object's properties.
    #[serde(
        default,
        deserialize_with = "null_is_default",
        skip_serializing_if = "IndexMap::is_empty"
    )]
    pub properties: IndexMap<String, ValueSchema>,
    /// The schema of an array's items.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub items: Option<Box<ValueSchema>>,
    /// The allowed values.
    #[serde(
        rename = "enum",
        default,
        deserialize_with = "null_is_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub values: Vec<Value>,
    /// The names of the required properties.
    #[serde(
        default,
        deserialize_with = "null_is_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub required: Vec<String>,
    /// `#/schemas/NAME`: a reference to an entry of the document's `schemas`.
    #[serde(rename = "$ref", skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
}
