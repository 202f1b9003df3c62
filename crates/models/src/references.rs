//! References in schemas, which APIs accept in one notation or not at all.
//!
//! Definitions of this library have none, but those of other servers do: into any place of the
//! schema, or by name.

use std::{collections::HashMap, ptr};

use lambda_tools_core::{
    json::JsonObject,
    tool::schema::{
        each_inner,
        reduced::{keywords::object_of, sentences},
        vocabulary::{Role, has_role},
    },
};
use percent_encoding::percent_decode_str;
use serde_json::{Value, json};

use super::budget::CopyBudget;

/// The depth below which no reference is replaced.
const MAX_DEPTH: usize = 64;

/// Moves the targets of all references to `$defs` of the root, and replaces references elsewhere
/// with a sentence. A reference at the root is replaced with its target.
pub(super) fn hoisted(schema: &Value, budget: &CopyBudget) -> JsonObject {
    let mut targets = Targets {
        root: schema,
        budget,
        names: HashMap::new(),
        counts: HashMap::new(),
        pending: Vec::new(),
    };
    let mut rewritten = schema.clone();
    targets.rewrite(&mut rewritten);
    let mut defs = JsonObject::new();
    while let Some((name, mut target)) = targets.pending.pop() {
        targets.rewrite(&mut target);
        defs.insert(name, target);
    }
    let mut root = object_of(rewritten);
    for _ in 0..MAX_DEPTH {
        let Some(reference) = root.shift_remove("$ref") else {
            break;
        };
        let target = target(&reference, &defs).and_then(Value::as_object);
        for (keyword, value) in target.into_iter().flatten() {
            root.entry(keyword).or_insert_with(|| value.clone());
        }
    }
    // The root of a schema that is itself.
    root.shift_remove("$ref");
    defs.sort_keys();
    if uses_references(&root.clone().into()) {
        root.insert("$defs".into(), defs.into());
    }
    root
}

/// Returns the definition, an object, that a reference of [`hoisted`] names.
pub(super) fn target<'a>(reference: &Value, defs: &'a JsonObject) -> Option<&'a Value> {
    let name = reference.as_str()?.strip_prefix("#/$defs/")?;
    defs.get(name).filter(|it| it.is_object())
}

/// Returns a copy of the definition. `None` once the budget is spent.
pub(super) fn copied(
    reference: &Value,
    defs: &JsonObject,
    budget: &CopyBudget,
) -> Option<JsonObject> {
    let target = target(reference, defs)?;
    budget.spend(target)?;
    target.as_object().cloned()
}

fn uses_references(schema: &Value) -> bool {
    match schema {
        Value::Object(object) => object
            .iter()
            .any(|(name, value)| (name == "$ref" && value.is_string()) || uses_references(value)),
        Value::Array(list) => list.iter().any(uses_references),
        _ => false,
    }
}

/// The targets of references.
struct Targets<'a> {
    root: &'a Value,
    budget: &'a CopyBudget,
    /// The names of targets in `$defs`. One target may have many references: `%64` is a `d`.
    names: HashMap<*const Value, String>,
    /// The names, and how many others were made from each.
    counts: HashMap<String, usize>,
    /// The targets that are not yet rewritten.
    pending: Vec<(String, Value)>,
}

impl Targets<'_> {
    fn rewrite(&mut self, schema: &mut Value) {
        let Some(object) = schema.as_object_mut() else {
            return;
        };
        object.retain(|keyword, value| {
            // `id` was a keyword in draft 4.
            !has_role(keyword, &[Role::Identity, Role::Definitions])
                || (keyword == "id" && !value.is_string())
        });
        let reference = ["$ref", "$dynamicRef", "$recursiveRef"]
            .into_iter()
            .find_map(|keyword| object.shift_remove(keyword));
        if let Some(Value::String(reference)) = reference {
            if let Some(name) = self.name_of(&reference) {
                object.insert("$ref".into(), format!("#/$defs/{name}").into());
            } else {
                let quoted = format!("JSON Schema: {}.", json!({"$ref": reference}));
                append(object, quoted);
            }
        }
        each_inner(object, &mut |_, inner| self.rewrite(inner));
    }

    fn name_of(&mut self, reference: &str) -> Option<String> {
        let fragment = reference.strip_prefix('#')?;
        let fragment = percent_decode_str(fragment).decode_utf8().ok()?;
        // Anchors are too rare to look for.
        let target = self.root.pointer(&fragment)?;
        if let Some(name) = self.names.get(&ptr::from_ref(target)) {
            return Some(name.clone());
        }
        self.budget.spend(target)?;
        let last = fragment.rsplit('/').next().unwrap_or_default();
        let is_allowed = |char: &char| char.is_ascii_alphanumeric() || *char == '_';
        let base: String = last.chars().filter(is_allowed).take(40).collect();
        let name = self.unused(if base.is_empty() { "root" } else { &base });
        self.names.insert(target, name.clone());
        self.pending.push((name.clone(), target.clone()));
        Some(name)
    }

    /// Returns the name, with a number if it is used already.
    fn unused(&mut self, base: &str) -> String {
        let mut name = base.to_owned();
        while self.counts.contains_key(&name) {
            let count = self.counts.entry(base.to_owned()).or_default();
            *count += 1;
            name = format!("{base}_{count}");
        }
        self.counts.insert(name.clone(), 1);
        name
    }
}

/// Appends a sentence to the description.
pub(super) fn append(schema: &mut JsonObject, sentence: String) {
    let text = schema.get("description").and_then(Value::as_str);
    let text = sentences::appended(text.unwrap_or_default().to_owned(), &[sentence]);
    schema.insert("description".into(), text.into());
}

/// Replaces all references of [`hoisted`] with their targets. Where a schema contains itself, or
/// the budget is spent, a sentence takes the place of the schema.
pub(super) fn inlined(mut root: JsonObject, budget: &CopyBudget) -> JsonObject {
    let Some(Value::Object(defs)) = root.shift_remove("$defs") else {
        return root;
    };
    let mut root = Value::Object(root);
    inline(&mut root, &defs, &mut Vec::new(), budget);
    object_of(root)
}

/// Replaces references with copies. `open` has the references around the schema, and `None` for
/// each schema between them.
fn inline(
    schema: &mut Value,
    defs: &JsonObject,
    open: &mut Vec<Option<String>>,
    budget: &CopyBudget,
) {
    let Some(object) = schema.as_object_mut() else {
        return;
    };
    let opened = open.len();
    open.push(None);
    while let Some(reference) = object.shift_remove("$ref") {
        let name = reference.as_str().map(str::to_owned);
        let may_copy = !open.contains(&name) && open.len() <= MAX_DEPTH;
        let copy = may_copy.then(|| copied(&reference, defs, budget)).flatten();
        let Some(copy) = copy else {
            if let Some(kind) = target(&reference, defs).and_then(|it| it.get("type")) {
                object.entry("type").or_insert(kind.clone());
            }
            let name = name.unwrap_or_default();
            let last = name.rsplit('/').next().unwrap_or_default();
            append(
                object,
                format!("Has the form of `{last}`, as described above."),
            );
            break;
        };
        open.push(name);
        for (keyword, value) in copy {
            object.entry(keyword).or_insert(value);
        }
    }
    each_inner(object, &mut |_, inner| inline(inner, defs, open, budget));
    open.truncate(opened);
}
