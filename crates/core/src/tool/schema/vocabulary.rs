//! The keywords of JSON Schema, and what this library has to know of each.
//!
//! Every pass over a schema reads this table, so that no pass forgets a keyword that another one
//! knows. Which keywords the API of a model or a client accepts is a matter of that format.

use Holds::{Data, Named, Schemas};
use Role::{
    Annotation, Branch, Condition, Definitions, Identity, OtherPart, Part, Reference, Rule,
};

/// The content of a keyword's value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Holds {
    /// No schemas.
    Data,
    /// A schema, or a list of schemas.
    Schemas,
    /// Schemas by name. `dependencies` has lists of names among them.
    Named,
}

/// The meaning of a keyword for a value of its schema.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Role {
    /// Nothing: it says something about the value.
    Annotation,
    /// Nothing: it identifies the schema.
    Identity,
    /// Nothing: other schemas refer to its schemas.
    Definitions,
    /// The value also has the schema that it refers to.
    Reference,
    /// The value also has its schemas, some or all of them.
    Branch,
    /// The value also has its schemas, or does not, as other schemas decide.
    Condition,
    /// A part of the value has its schema, which only the part's name or index chooses.
    Part,
    /// Parts of the value have its schemas, which more than their names and indices choose.
    OtherPart,
    /// The value must satisfy it.
    Rule,
}

/// The content and the role of a keyword, and the type of the values that it is about, or [`ANY`].
pub(super) type Keyword = (Holds, Role, &'static str);

pub(super) const ANY: &str = "";

/// Returns a keyword of any draft since draft 4.
pub(super) fn find(name: &str) -> Option<Keyword> {
    Some(match name {
        "$anchor" | "$comment" | "$dynamicAnchor" | "$id" | "$recursiveAnchor" | "$schema"
        | "$vocabulary" | "id" => (Data, Identity, ANY),
        "$dynamicRef" | "$recursiveRef" | "$ref" => (Data, Reference, ANY),
        "$defs" | "definitions" => (Named, Definitions, ANY),
        "default" | "deprecated" | "description" | "examples" | "readOnly" | "title"
        | "writeOnly" => (Data, Annotation, ANY),
        "contentSchema" => (Schemas, Annotation, "string"),
        "allOf" | "anyOf" | "oneOf" => (Schemas, Branch, ANY),
        "if" | "then" | "else" | "not" => (Schemas, Condition, ANY),
        "dependencies" | "dependentSchemas" => (Named, Condition, "object"),
        "properties" => (Named, Part, "object"),
        "additionalProperties" => (Schemas, Part, "object"),
        "items" => (Schemas, Part, "array"),
        "patternProperties" => (Named, OtherPart, "object"),
        "propertyNames" | "unevaluatedProperties" => (Schemas, OtherPart, "object"),
        "additionalItems" | "prefixItems" | "unevaluatedItems" => (Schemas, OtherPart, "array"),
        "contains" => (Schemas, Rule, "array"),
        "const" | "enum" | "type" => (Data, Rule, ANY),
        "dependentRequired" | "maxProperties" | "minProperties" | "required" => {
            (Data, Rule, "object")
        }
        "maxContains" | "maxItems" | "minContains" | "minItems" | "uniqueItems" => {
            (Data, Rule, "array")
        }
        "exclusiveMaximum" | "exclusiveMinimum" | "maximum" | "minimum" | "multipleOf" => {
            (Data, Rule, "number")
        }
        "contentEncoding" | "contentMediaType" | "format" | "maxLength" | "minLength"
        | "pattern" => (Data, Rule, "string"),
        _ => return None,
    })
}

/// The keywords whose branches describe the value itself.
pub const BRANCHES: [&str; 3] = ["anyOf", "oneOf", "allOf"];

/// Returns the content of a keyword's value: data, if the keyword is unknown.
pub(crate) fn holds(name: &str) -> Holds {
    find(name).map_or(Data, |(holds, ..)| holds)
}

/// Returns true if a keyword has one of these roles.
pub fn has_role(name: &str, roles: &[Role]) -> bool {
    find(name).is_some_and(|(_, role, _)| roles.contains(&role))
}

/// Returns true if a keyword may restrict values of a type.
pub fn applies_to(name: &str, kind: &str) -> bool {
    let about = find(name).map_or(ANY, |(.., kind)| kind);
    about == ANY || about == kind || (about, kind) == ("number", "integer")
}

/// Returns true if draft 7 does not have a keyword that decides which values are valid.
pub(super) fn is_newer(name: &str) -> bool {
    matches!(
        name,
        "$dynamicRef"
            | "$vocabulary"
            | "dependentRequired"
            | "dependentSchemas"
            | "maxContains"
            | "minContains"
            | "prefixItems"
            | "unevaluatedItems"
            | "unevaluatedProperties"
    )
}

#[cfg(test)]
pub(super) mod tests;
