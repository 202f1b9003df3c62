//! Many operations behind a few tools: one finds them, one describes them, and two call them.
//!
//! Hundreds of tools in a list cost more tokens than most conversations, and a model chooses worse
//! among them.

use std::{collections::BTreeMap, sync::Arc};

use lambda_tools_core::{Context, Tool};
use lambda_tools_schema::{ParameterErrors, Schema, text::closest};
use serde_json::{Value, json};

use super::{Api, one_of, taken_input, with_requirements};
use crate::plan::ApiTool;

/// The maximum number of operations that a search finds.
const MOST_FOUND: usize = 8;

/// An operation that is found and called by its name.
struct Entry {
    plan: ApiTool,
    input: Schema,
    /// The text that is searched, in lower case.
    text: String,
}

type Entries = BTreeMap<String, Entry>;

/// Returns the tools for all operations.
pub(super) fn tools(api: &Arc<Api>, plans: Vec<ApiTool>) -> Vec<Tool> {
    let first = plans.first().map(|it| it.id.clone()).unwrap_or_default();
    let toolkit = first.split('.').next().unwrap_or_default();
    let version = first.rsplit('@').next().unwrap_or_default();
    let entries: Arc<Entries> = Arc::new(plans.into_iter().map(entry).collect());
    let id = |name: &str| format!("{toolkit}.{name}@{version}");
    let title = &api.settings.title;
    let has = |reads: bool| entries.values().any(|it| it.plan.read_only == reads);
    let search = searching(id("Search"), title, &entries);
    let own = [search, describing(id("Describe"), &entries)].into_iter();
    let own = own.map(|it| it.read_only(true).open_world(false).idempotent());
    let mut all: Vec<_> = own.collect();
    if has(true) {
        let text = "Calls an operation that only reads. Search and describe it first.";
        let read = calling(id("Read"), text, api, &entries, true);
        all.push(read.read_only(true).idempotent());
    }
    if has(false) {
        let text = "Calls an operation that may change something. Search and describe it first.";
        all.push(calling(id("Call"), text, api, &entries, false).read_only(false));
    }
    all
}

fn entry(mut plan: ApiTool) -> (String, Entry) {
    let id = plan.id.split('@').next().unwrap_or_default();
    let name = id.split('.').next_back().unwrap_or_default().to_owned();
    let mut input = Schema::from_value(taken_input(&mut plan));
    input.annotate_formats();
    let text = format!("{name} {} {}", plan.operation, plan.description).to_ascii_lowercase();
    (name, Entry { plan, input, text })
}

fn searching(id: String, title: &str, entries: &Arc<Entries>) -> Tool {
    let schema = json!({"type": "object", "additionalProperties": false, "required": ["words"],
        "properties": {"words": {"type": "string", "description": "What to look for, such as `list issues`."}}});
    let text = format!("Finds operations of {title} by words of their names and descriptions.");
    let entries = Arc::clone(entries);
    let run = move |input: Value| {
        let found = found(&entries, input["words"].as_str().unwrap_or_default());
        async move { Ok(found) }
    };
    Tool::dynamic(id, text, schema, json!({}), run)
}

/// Returns the operations with the most of the words, those in their names first.
fn found(entries: &Entries, words: &str) -> Value {
    let words = words.to_ascii_lowercase();
    let words: Vec<_> = words.split_whitespace().collect();
    let score = |name: &str, entry: &Entry| {
        let name = name.to_ascii_lowercase();
        let points = words.iter().map(|word| match () {
            () if name.contains(word) => 3,
            () if entry.text.contains(word) => 1,
            () => 0,
        });
        points.sum::<usize>()
    };
    let scored = entries.iter().map(|(name, it)| (score(name, it), name, it));
    let mut scored: Vec<_> = scored.filter(|(score, ..)| *score > 0).collect();
    scored.sort_by_key(|(score, name, _)| (std::cmp::Reverse(*score), name.len(), *name));
    let first_sentence = |text: &str| text.split(". ").next().unwrap_or_default().to_owned();
    let found = scored.iter().take(MOST_FOUND).map(|(_, name, entry)| {
        json!({"operation": name, "description": first_sentence(&entry.plan.description), "read_only": entry.plan.read_only})
    });
    found.collect()
}

fn describing(id: String, entries: &Arc<Entries>) -> Tool {
    let schema = json!({"type": "object", "additionalProperties": false, "required": ["operation"],
        "properties": {"operation": {"type": "string", "description": "The name of the operation."}}});
    let entries = Arc::clone(entries);
    let known = Arc::clone(&entries);
    let run = move |input: Value| {
        let (name, it) = selected(&entries, &input).expect("it has been checked");
        let tool = if it.plan.read_only { "Read" } else { "Call" };
        let described = json!({"operation": name, "description": it.plan.description, "input": it.input.value(), "call_with": tool});
        async move { Ok(described) }
    };
    let text = "Describes an operation and its input.";
    let tool = Tool::dynamic(id, text, schema, json!({}), run);
    tool.checked(move |input| selected(&known, &input).map(drop).map(|()| input))
}

fn calling(id: String, text: &str, api: &Arc<Api>, entries: &Arc<Entries>, reads: bool) -> Tool {
    let schema = json!({"type": "object", "additionalProperties": false, "required": ["operation", "input"],
    "properties": {
        "operation": {"type": "string", "description": "The name of the operation."},
        "input": {"type": "object", "description": "The input, as the operation's description says."},
    }});
    let (shared, all, known) = (Arc::clone(api), Arc::clone(entries), Arc::clone(entries));
    let run = move |mut input: Value, cx: Context| {
        let (api, entries) = (Arc::clone(&shared), Arc::clone(&all));
        async move {
            let inner = input["input"].take();
            let (_, entry) = selected(&entries, &input).expect("it has been checked");
            api.call(&entry.plan, inner, &cx).await
        }
    };
    let check = move |mut input: Value| {
        let (_, entry) = selected(&known, &input)?;
        if entry.plan.read_only != reads {
            let other = if reads { "Call" } else { "Read" };
            return Err(error(format!("Is called with the tool {other}")));
        }
        check(entry, &mut input["input"]).map(|()| input)
    };
    let plans = entries.values().map(|it| &it.plan);
    let plans = plans.filter(|it| it.read_only == reads);
    let tool = Tool::dynamic(id, text, schema, json!({}), run).checked(check);
    with_requirements(tool, api, plans)
}

fn selected<'a>(
    entries: &'a Entries,
    input: &Value,
) -> Result<(&'a String, &'a Entry), ParameterErrors> {
    let name = input["operation"].as_str().unwrap_or_default();
    entries.get_key_value(name).ok_or_else(|| {
        let names = entries.keys().map(String::as_str).take(1000);
        let hint = closest(name, names).map(|it| format!("; did you mean {it}?"));
        let hint = hint.unwrap_or_default();
        error(format!("Is not the name of an operation{hint}"))
    })
}

fn error(text: String) -> ParameterErrors {
    ParameterErrors::from([("operation".into(), text)])
}

/// Checks an input against the schema of its operation.
fn check(entry: &Entry, input: &mut Value) -> Result<(), ParameterErrors> {
    entry.input.normalize(input);
    entry.input.drop_optional_nulls(input);
    let checked = entry.input.check(input, "");
    let checked = checked.map_err(|_| error("Has a definition that is not valid".into()))?;
    let checked = checked.and_then(|()| one_of(&entry.plan, input));
    checked.map_err(|errors| {
        let errors = errors.into_iter().map(|(path, text)| match &*path {
            "" | "input" => ("input".into(), text),
            path => (format!("input.{path}"), text),
        });
        errors.collect()
    })
}
