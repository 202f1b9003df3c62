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

/// A keyword.
#[derive(Debug)]
struct Keyword {
    name: &'static str,
    holds: Holds,
    role: Role,
    /// The type of the values that it is about, or [`ANY`].
    kind: &'static str,
    /// True if it decides which values are valid, and draft 7 does not have it.
    is_newer: bool,
}

pub(super) const ANY: &str = "";

const fn row(name: &'static str, holds: Holds, role: Role, kind: &'static str) -> Keyword {
    Keyword {
        name,
        holds,
        role,
        kind,
        is_newer: false,
    }
}

const fn newer(name: &'static str, holds: Holds, role: Role, kind: &'static str) -> Keyword {
    let keyword = row(name, holds, role, kind);
    Keyword {
        is_newer: true,
        ..keyword
    }
}

/// The keywords of all drafts since draft 4, by name.
static KEYWORDS: [Keyword; 63] = [
    row("$anchor", Data, Identity, ANY),
    row("$comment", Data, Identity, ANY),
    row("$defs", Named, Definitions, ANY),
    row("$dynamicAnchor", Data, Identity, ANY),
    newer("$dynamicRef", Data, Reference, ANY),
    row("$id", Data, Identity, ANY),
    row("$recursiveAnchor", Data, Identity, ANY),
    row("$recursiveRef", Data, Reference, ANY),
    row("$ref", Data, Reference, ANY),
    row("$schema", Data, Identity, ANY),
    newer("$vocabulary", Data, Identity, ANY),
    row("additionalItems", Schemas, OtherPart, "array"),
    row("additionalProperties", Schemas, Part, "object"),
    row("allOf", Schemas, Branch, ANY),
    row("anyOf", Schemas, Branch, ANY),
    row("const", Data, Rule, ANY),
    row("contains", Schemas, Rule, "array"),
    row("contentEncoding", Data, Rule, "string"),
    row("contentMediaType", Data, Rule, "string"),
    row("contentSchema", Schemas, Annotation, "string"),
    row("default", Data, Annotation, ANY),
    row("definitions", Named, Definitions, ANY),
    row("dependencies", Named, Condition, "object"),
    newer("dependentRequired", Data, Rule, "object"),
    newer("dependentSchemas", Named, Condition, "object"),
    row("deprecated", Data, Annotation, ANY),
    row("description", Data, Annotation, ANY),
    row("else", Schemas, Condition, ANY),
    row("enum", Data, Rule, ANY),
    row("examples", Data, Annotation, ANY),
    row("exclusiveMaximum", Data, Rule, "number"),
    row("exclusiveMinimum", Data, Rule, "number"),
    row("format", Data, Rule, "string"),
    row("id", Data, Identity, ANY),
    row("if", Schemas, Condition, ANY),
    row("items", Schemas, Part, "array"),
    newer("maxContains", Data, Rule, "array"),
    row("maxItems", Data, Rule, "array"),
    row("maxLength", Data, Rule, "string"),
    row("maxProperties", Data, Rule, "object"),
    row("maximum", Data, Rule, "number"),
    newer("minContains", Data, Rule, "array"),
    row("minItems", Data, Rule, "array"),
    row("minLength", Data, Rule, "string"),
    row("minProperties", Data, Rule, "object"),
    row("minimum", Data, Rule, "number"),
    row("multipleOf", Data, Rule, "number"),
    row("not", Schemas, Condition, ANY),
    row("oneOf", Schemas, Branch, ANY),
    row("pattern", Data, Rule, "string"),
    row("patternProperties", Named, OtherPart, "object"),
    newer("prefixItems", Schemas, OtherPart, "array"),
    row("properties", Named, Part, "object"),
    row("propertyNames", Schemas, OtherPart, "object"),
    row("readOnly", Data, Annotation, ANY),
    row("required", Data, Rule, "object"),
    row("then", Schemas, Condition, ANY),
    row("title", Data, Annotation, ANY),
    row("type", Data, Rule, ANY),
    newer("unevaluatedItems", Schemas, OtherPart, "array"),
    newer("unevaluatedProperties", Schemas, OtherPart, "object"),
    row("uniqueItems", Data, Rule, "array"),
    row("writeOnly", Data, Annotation, ANY),
];

/// The keywords whose branches describe the value itself.
pub const BRANCHES: [&str; 3] = ["anyOf", "oneOf", "allOf"];

fn find(name: &str) -> Option<&'static Keyword> {
    let index = KEYWORDS.binary_search_by(|it| it.name.cmp(name));
    index.ok().map(|index| &KEYWORDS[index])
}

/// Returns the content of a keyword's value: data, if the keyword is unknown.
pub(crate) fn holds(name: &str) -> Holds {
    find(name).map_or(Data, |it| it.holds)
}

/// Returns true if a keyword has one of these roles.
pub fn has_role(name: &str, roles: &[Role]) -> bool {
    find(name).is_some_and(|it| roles.contains(&it.role))
}

/// Returns true if a keyword may restrict values of a type.
pub fn applies_to(name: &str, kind: &str) -> bool {
    let about = find(name).map_or(ANY, |it| it.kind);
    about == ANY || about == kind || (about, kind) == ("number", "integer")
}

/// Returns true if draft 7 does not have a keyword that decides which values are valid.
pub(super) fn is_newer(name: &str) -> bool {
    find(name).is_some_and(|it| it.is_newer)
}

#[cfg(test)]
pub(super) mod tests;
