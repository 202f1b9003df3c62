//! The operations of a document.

use lambda_tools_schema::document::Document;
use serde_json::{Map, Value};

use crate::{
    media_type::{essence_of, is_json, is_textual},
    plan::Answer,
};

/// The methods that a path can have: OpenAPI 3.2, Path Item Object.
pub(crate) const METHODS: [&str; 9] = [
    "GET", "PUT", "POST", "DELETE", "OPTIONS", "HEAD", "PATCH", "TRACE", "QUERY",
];

/// One operation.
#[derive(Clone, Copy)]
pub(crate) struct Operation<'a> {
    pub(crate) method: &'a str,
    pub(crate) path: &'a str,
    pub(crate) item: &'a Map<String, Value>,
    pub(crate) object: &'a Map<String, Value>,
}

impl<'a> Operation<'a> {
    /// Returns all operations, in the document's order.
    pub(crate) fn all(document: &'a Document) -> Vec<Self> {
        let paths = document.root()["paths"].as_object();
        let items = paths.into_iter().flatten().filter_map(|(path, item)| {
            let item = document.resolve(item)?.as_object()?;
            Some((path.as_str(), item))
        });
        let of_item = |(path, item): (&'a str, &'a Map<String, Value>)| {
            let others = item.get("additionalOperations").and_then(Value::as_object);
            let others = others.into_iter().flatten();
            let others = others.map(|(method, object)| (method.as_str(), Some(object)));
            let usual = METHODS.map(|it| (it, item.get(&it.to_ascii_lowercase())));
            let all = usual.into_iter().chain(others);
            all.filter_map(move |(method, object)| {
                let object = object?.as_object()?;
                Some(Self {
                    method,
                    path,
                    item,
                    object,
                })
            })
        };
        items.flat_map(of_item).collect()
    }

    /// Returns what identifies the operation for people: `GET /pets/{id}`.
    pub(crate) fn label(&self) -> String {
        format!("{} {}", self.method, self.path)
    }

    pub(crate) fn id(&self) -> Option<&'a str> {
        self.object.get("operationId")?.as_str()
    }

    pub(crate) fn tags(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        let tags = self.object.get("tags").and_then(Value::as_array);
        tags.into_iter().flatten().filter_map(Value::as_str)
    }

    /// Returns a text of the operation or, failing that, of its path.
    pub(crate) fn text(&self, field: &str) -> Option<&'a str> {
        let of = |object: &'a Map<String, Value>| object.get(field)?.as_str();
        let text = of(self.object).or_else(|| of(self.item))?;
        Some(text).filter(|it| !it.trim().is_empty())
    }

    /// Returns true if the method only reads: RFC 9110, 9.2.1, and OpenAPI 3.2 for `QUERY`.
    pub(crate) fn is_safe(&self) -> bool {
        matches!(self.method, "GET" | "HEAD" | "OPTIONS" | "TRACE" | "QUERY")
    }

    /// Returns the parameters of the path and of the operation, which replace those of the same
    /// name and place: OpenAPI 3.1, Operation Object. A reference that leads nowhere is an error.
    pub(crate) fn parameters(
        &self,
        document: &'a Document,
    ) -> Result<Vec<&'a Map<String, Value>>, String> {
        let mut merged: Vec<&Map<String, Value>> = Vec::new();
        for object in [self.item, self.object] {
            let listed = object.get("parameters").and_then(Value::as_array);
            for parameter in listed.into_iter().flatten() {
                let parameter = document.resolve(parameter).and_then(Value::as_object);
                let parameter = parameter.ok_or("a parameter is a reference that leads nowhere")?;
                let is_same = |it: &&mut &Map<String, Value>| {
                    let mut keys = ["name", "in"].iter();
                    keys.all(|key| it.get(*key) == parameter.get(*key))
                };
                match merged.iter_mut().find(is_same) {
                    Some(known) => *known = parameter,
                    None => merged.push(parameter),
                }
            }
        }
        Ok(merged)
    }

    /// Returns the value of the extension `x-mcp` of the operation itself.
    pub(crate) fn own_extension(&self) -> Option<&'a Value> {
        self.object.get("x-mcp")
    }

    /// Returns the value of the extension `x-mcp` of the operation, its path or the document.
    pub(crate) fn extension(&self, document: &'a Document) -> Option<&'a Value> {
        let of = |object: &'a Map<String, Value>| object.get("x-mcp");
        let own = of(self.object).or_else(|| of(self.item));
        own.or_else(|| document.root().get("x-mcp"))
    }

    /// Returns the kind of answer that the tool gives, by the first response with a status 2xx.
    pub(crate) fn answer(&self, document: &Document) -> Answer {
        let responses = self.object.get("responses").and_then(Value::as_object);
        let with = |start: &str| {
            let mut statuses = responses.into_iter().flatten();
            statuses.find(|(status, _)| status.starts_with(start))
        };
        let redirect = with("3");
        let response = with("2").or_else(|| with("default").filter(|_| redirect.is_none()));
        let Some((_, response)) = response else {
            return redirect.map_or(Answer::Any, |_| Answer::Redirect);
        };
        let response = document.resolve(response).unwrap_or(&Value::Null);
        let content = response["content"].as_object();
        content.map_or(Answer::Any, answer_in)
    }
}

fn answer_in(content: &Map<String, Value>) -> Answer {
    let find = |is: fn(&str) -> bool| content.keys().map(|it| essence_of(it)).find(|it| is(it));
    let is_concrete = |it: &str| !it.contains('*') && it.contains('/');
    if let Some(media_type) = find(|it| it == "application/json").or_else(|| find(is_json)) {
        return Answer::Json(media_type);
    }
    if let Some(media_type) = find(is_textual) {
        return Answer::Text(media_type);
    }
    match find(|_| true).filter(|it| is_concrete(it)) {
        Some(media_type) => Answer::Content(media_type),
        None => Answer::Any,
    }
}
