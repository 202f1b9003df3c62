//! A document, its owner's options for the conversion, and the report on what became of it.

mod reduce;

use std::{collections::BTreeMap, fmt};

use lambda_tools_core::Tool;
use lambda_tools_schema::document::Document;
use serde_json::{Map, Value};

use crate::{ApiTools, OpenApiError, choice, document::checked, operation::Operation};

/// An OpenAPI document, and the operations in it that become tools.
///
/// ```
/// # use lambda_tools_openapi::{OpenApi, OpenApiOptions};
/// let document = serde_json::json!({
///     "openapi": "3.1.0",
///     "info": {"title": "Pets API", "version": "1"},
///     "servers": [{"url": "https://pets.example"}],
///     "paths": {"/pets/{id}": {"get": {
///         "operationId": "getPet", "summary": "Returns a pet", "tags": ["Pets"],
///         "parameters": [{"name": "id", "in": "path", "schema": {"type": "integer"}}],
///         "responses": {"200": {"description": "A pet", "content": {"application/json": {}}}},
///     }}},
/// });
/// let options = OpenApiOptions {
///     include_tags: vec!["Pets".to_owned()],
///     ..OpenApiOptions::default()
/// };
/// let tools = OpenApi::new(document, options)?.tools()?;
/// assert_eq!(tools.len(), 1);
/// # Ok::<(), lambda_tools_openapi::OpenApiError>(())
/// ```
#[derive(Clone, Debug)]
pub struct OpenApi {
    document: Document,
    /// The options for the conversion.
    pub options: OpenApiOptions,
}

/// The options for the conversion of a document. By default, no operations are chosen.
///
/// Operations are named by their ids or by method and path, such as `GET /pets/{id}`.
#[derive(Clone, Debug, Default)]
pub struct OpenApiOptions {
    /// The tags of operations to choose.
    pub include_tags: Vec<String>,
    /// The operations to choose.
    pub include_operations: Vec<String>,
    /// Patterns of the paths whose operations to choose, in which `*` is any text.
    pub include_paths: Vec<String>,
    /// The methods of operations to choose. If operations are also chosen in another way, only those of
    /// them that have these methods are kept.
    pub include_methods: Vec<String>,
    /// The operations to leave out.
    pub exclude: Vec<String>,
    /// Serves tools to search, describe and call the operations, in place of one for each.
    pub searchable: bool,
    /// Allows more than 40 tools in one list.
    pub list_all: bool,
    /// The toolkit's name; by default it is made from the document's title.
    pub toolkit: Option<String>,
    /// The version of all tools, `1.0.0` by default. Raise it when their inputs change.
    pub tool_version: Option<String>,
    /// The names of operations' tools within their toolkit.
    pub rename: BTreeMap<String, String>,
    /// The descriptions of operations' tools.
    pub describe: BTreeMap<String, String>,
    /// The values of operations' parameters or fields of the body, which models then neither see nor
    /// choose.
    pub fix: BTreeMap<String, Map<String, Value>>,
    /// The operations that only read although their methods do not say so, or patterns of their paths.
    pub reads: Vec<String>,
    /// The operations whose equal calls without an id are one call, and the seconds for which they are
    /// ([`Tool::once_within`]).
    pub once: BTreeMap<String, u64>,
    /// The URL that the document comes from: relative URLs of its servers are relative to that.
    pub document_url: Option<String>,
    /// The URL that paths are appended to; needed if the document names none or several.
    pub base_url: Option<String>,
    /// Other hosts that the document names for some of its operations, and that are allowed.
    pub hosts: Vec<String>,
    /// The variables of the document's server URLs.
    pub server_variables: BTreeMap<String, String>,
    /// The ids of the secrets for security schemes; by default they are made from both names, such as
    /// `FIGMA_PERSONAL_ACCESS_TOKEN`.
    pub secrets: BTreeMap<String, String>,
    /// The id of a secret that is sent as a bearer token with each request, whatever the document says.
    pub bearer: Option<String>,
    /// The security schemes to prefer where an operation has alternatives, and to use where the document
    /// does not say which it needs; with a flow such as `clientCredentials`, if one is to be used.
    pub security: BTreeMap<String, Option<String>>,
    /// The header that gets the call's id, by which the API recognizes repeated requests, such as
    /// `Idempotency-Key`.
    pub idempotency_header: Option<String>,
    /// Allows an API at an address that is not reachable from the internet.
    pub allow_private: bool,
}

impl OpenApiOptions {
    /// Returns options that choose all operations.
    #[must_use]
    pub fn all() -> Self {
        Self {
            include_paths: vec!["*".to_owned()],
            ..Self::default()
        }
    }
}

/// The tools of a document, and a report on the operations that were left out.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Reduction {
    /// The tools.
    pub tools: ApiTools,
    /// The result of converting the operations.
    pub report: Report,
}

/// The result of converting a document's operations.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Report {
    /// The number of operations in the document.
    pub operations: usize,
    /// The number of those that were chosen.
    pub chosen: usize,
    /// The chosen operations that are no tools, with the reasons.
    pub left_out: Vec<Note>,
    /// Warnings about the generated tools.
    pub notes: Vec<Note>,
}

/// A sentence about an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Note {
    /// The method and the path: `GET /pets/{id}`.
    pub operation: String,
    /// The sentence, without a period.
    pub text: String,
}

impl Note {
    pub(crate) fn new(operation: String, text: impl Into<String>) -> Self {
        let text = text.into();
        Self { operation, text }
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.operation, self.text)
    }
}

impl OpenApi {
    /// Reads a document of OpenAPI 3.0, 3.1 or 3.2, in one file.
    ///
    /// # Errors
    /// The document is of another version, has no operations, or refers to other files.
    pub fn new(document: Value, options: OpenApiOptions) -> Result<Self, OpenApiError> {
        let document = checked(document)?;
        if Operation::all(&document).is_empty() {
            let webhooks = document.root()["webhooks"].as_object();
            let webhooks = webhooks.filter(|it| !it.is_empty());
            let text = webhooks.map_or("", |_| ", but webhooks, which an API calls itself");
            let text = format!("the document has no operations{text}");
            return Err(OpenApiError::new(text));
        }
        Ok(Self { document, options })
    }

    /// Returns true if operations are chosen: by tags, ids, paths, methods or all.
    #[must_use]
    pub fn has_choice(&self) -> bool {
        let operations = Operation::all(&self.document);
        let mut operations = operations.iter();
        choice::is_made(&self.options)
            || operations.any(|it| choice::enabled(it, &self.document) == Some(true))
    }

    /// Returns the number of operations in the document.
    #[must_use]
    pub fn operations(&self) -> usize {
        Operation::all(&self.document).len()
    }

    /// Returns the groups of operations to choose from, with their sizes: tags, or the first segments
    /// of the paths of operations without a tag, such as `/pets`.
    #[must_use]
    pub fn tags(&self) -> Vec<(String, usize)> {
        choice::groups(&self.document)
    }

    /// Returns the tools, to be served with others: see [`ApiTools::tools`].
    ///
    /// # Errors
    /// Those of [`reduce`](Self::reduce) and of [`ApiTools::tools`].
    pub fn tools(&self) -> Result<Vec<Tool>, OpenApiError> {
        self.reduce()?.tools.tools()
    }
}
