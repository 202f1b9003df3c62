//! The server as an `OpenAPI` 3.1 document: OXP's paths, and a path for each version of each tool.
//!
//! The paths of single tools exist because generators of clients make a typed function of each, as
//! they cannot of one path for all tools.

mod draft;
mod example;
mod operation;
mod security;

use std::{collections::HashSet, sync::Mutex};

use bytes::Bytes;
use serde_json::{Value, json};

use crate::{
    Auth, Server, ServerInfo, Toolkit,
    payload::{JsonObject, LARGEST_PAYLOAD, encoded_size},
    protocol::listed_tools::ListedTools,
};
use operation::ToolOperation;

/// OXP's own paths and schemas.
const BASE: &str = include_str!("openapi/base.json");

/// The encoded document of the URL that was used last: most servers have only one.
#[derive(Default)]
pub(super) struct OpenApiDocument(Mutex<Option<(Option<String>, Result<Bytes, String>)>>);

impl OpenApiDocument {
    pub(super) fn get(&self, info: &ServerInfo, tools: &ListedTools<'_>) -> Result<Bytes, String> {
        if !tools.is_complete() {
            return encode(info, tools);
        }
        let mut last = self.0.lock().unwrap_or_else(|it| it.into_inner());
        if let Some((url, document)) = &*last
            && url.as_deref() == tools.server_url()
        {
            return document.clone();
        }
        let document = encode(info, tools);
        *last = Some((tools.server_url().map(str::to_owned), document.clone()));
        document
    }
}

impl Toolkit {
    /// The tools as an `OpenAPI` 3.1 document, like `GET /openapi.json` of a server that anyone may
    /// call.
    ///
    /// ```
    /// # use lambda_tools::Toolkit;
    /// let document = Toolkit::new([])?.openapi();
    /// assert_eq!(document["openapi"], "3.1.0");
    /// # Ok::<(), lambda_tools::BuildError>(())
    /// ```
    #[must_use]
    pub fn openapi(&self) -> Value {
        document_of(
            &ServerInfo::default(),
            &ListedTools::complete(self, &Auth::none(), None),
        )
    }
}

impl Server {
    /// The tools as an `OpenAPI` 3.1 document, like `GET /openapi.json`, with the title and the
    /// credentials that this server was given. Credentials that the environment chooses are not in
    /// it.
    #[must_use]
    pub fn openapi(&self) -> Value {
        let open = Auth::none();
        let auth = self.auth.as_ref().unwrap_or(&open);
        document_of(
            &self.info,
            &ListedTools::complete(&self.toolkit, auth, None),
        )
    }
}

fn encode(info: &ServerInfo, tools: &ListedTools<'_>) -> Result<Bytes, String> {
    let body = serde_json::to_vec(&document_of(info, tools)).map_err(|error| error.to_string())?;
    let size = encoded_size(&body);
    if size > LARGEST_PAYLOAD {
        return Err(format!(
            "The OpenAPI document would be {size} bytes; AWS Lambda sends {LARGEST_PAYLOAD} at \
             most."
        ));
    }
    Ok(body.into())
}

fn document_of(info: &ServerInfo, tools: &ListedTools<'_>) -> Value {
    let mut document: Value = serde_json::from_str(BASE).expect("a test parses it");
    document["info"] = json!(info);
    // The default of the specification is the root of the host that the document comes from.
    let url = tools.server_url().unwrap_or("/");
    document["servers"] = json!([{"url": url}]);
    add_tools(&mut document, tools);
    security::add(&mut document, tools.auth());
    document
}

fn add_tools(document: &mut Value, tools: &ListedTools<'_>) {
    let newest: HashSet<_> = tools.newest().map(|entry| &entry.id).collect();
    let mut names = HashSet::new();
    let mut tags = JsonObject::new();
    for entry in tools.entries() {
        let operation = ToolOperation::of(entry, newest.contains(&entry.id), &mut names);
        let tag = operation.tag;
        tags.entry(tag).or_insert_with(|| json!({"name": tag}));
        let requirement = security::requirement(tools.auth(), &entry.tool);
        operation.add_to(document, requirement);
    }
    if let Some(all) = document["tags"].as_array_mut() {
        all.extend(tags.into_iter().map(|(_, tag)| tag));
    }
}
