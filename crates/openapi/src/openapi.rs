//! The conversion of a document, with what an owner says about it.

use std::collections::BTreeMap;

use lambda_tools_core::{Tool, ToolId, tool::schema::Schema};
use serde_json::Value;

use crate::{
    ApiTools, Note, OpenApiError, Report,
    answer::answer_of,
    choice::{self, Choice},
    describe::{description_of, is_undescribed},
    document::Document,
    input::{Fixed, Input},
    names::{tool_of, toolkit_of},
    operation::Operation,
    plan::{ApiTool, Credential, RequestPlan},
    security::{CredentialOptions, credentials_in, needs_of},
    servers::{self, ServerOptions},
};

/// The maximum number of tools in a list: models choose worse among more.
const MOST_TOOLS: usize = 40;

/// An OpenAPI document, and the operations in it that become tools.
///
/// ```
/// # use lambda_tools_openapi::OpenApi;
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
/// let tools = OpenApi::new(document)?.include_tags(["Pets"]).tools()?;
/// assert_eq!(tools.len(), 1);
/// # Ok::<(), lambda_tools_openapi::OpenApiError>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct OpenApi {
    document: Document,
    toolkit: String,
    version: String,
    choice: Choice,
    servers: ServerOptions,
    credentials: CredentialOptions,
    names: BTreeMap<String, String>,
    descriptions: BTreeMap<String, String>,
    fixed: BTreeMap<String, Fixed>,
    readers: Vec<String>,
    idempotency_header: Option<String>,
    allows_private: bool,
    is_searchable: bool,
    lists_all: bool,
}

/// The tools of a document, and a report on the operations that were left out.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Reduction {
    /// The tools.
    pub tools: ApiTools,
    /// What became of the operations.
    pub report: Report,
}

impl OpenApi {
    /// Reads a document of OpenAPI 3.0 or 3.1, in one file.
    ///
    /// # Errors
    /// The document is of another version, or refers to other files.
    pub fn new(document: Value) -> Result<Self, OpenApiError> {
        let document = Document::new(document)?;
        Ok(Self {
            toolkit: toolkit_of(document.title()),
            document,
            version: "1.0.0".to_owned(),
            choice: Choice::default(),
            servers: ServerOptions::default(),
            credentials: CredentialOptions::default(),
            names: BTreeMap::new(),
            descriptions: BTreeMap::new(),
            fixed: BTreeMap::new(),
            readers: Vec::new(),
            idempotency_header: None,
            allows_private: false,
            is_searchable: false,
            lists_all: false,
        })
    }

    /// Sets the toolkit's name; by default it is made of the document's title.
    pub fn toolkit(mut self, name: impl Into<String>) -> Self {
        self.toolkit = name.into();
        self
    }

    /// Sets the version of all tools, `1.0.0` by default. Raise it when their inputs change.
    pub fn tool_version(mut self, version: impl Into<String>) -> Self {
        self.version = version.into();
        self
    }

    /// Chooses all operations.
    pub fn include_all(mut self) -> Self {
        self.choice.all = true;
        self
    }

    /// Chooses the operations with one of these tags.
    pub fn include_tags<S: Into<String>>(mut self, tags: impl IntoIterator<Item = S>) -> Self {
        self.choice.tags.extend(tags.into_iter().map(Into::into));
        self
    }

    /// Chooses operations by their ids or by method and path, such as `GET /pets/{id}`.
    pub fn include_operations<S: Into<String>>(mut self, ids: impl IntoIterator<Item = S>) -> Self {
        self.choice
            .operations
            .extend(ids.into_iter().map(Into::into));
        self
    }

    /// Chooses the operations of the paths that match a pattern, in which `*` is any text.
    pub fn include_paths<S: Into<String>>(mut self, globs: impl IntoIterator<Item = S>) -> Self {
        self.choice.paths.extend(globs.into_iter().map(Into::into));
        self
    }

    /// Chooses only operations with these methods: of the others, if some are chosen otherwise.
    pub fn include_methods<S: Into<String>>(
        mut self,
        methods: impl IntoIterator<Item = S>,
    ) -> Self {
        self.choice
            .methods
            .extend(methods.into_iter().map(Into::into));
        self
    }

    /// Leaves out operations, by their ids or by method and path.
    pub fn exclude<S: Into<String>>(mut self, ids: impl IntoIterator<Item = S>) -> Self {
        self.choice.excluded.extend(ids.into_iter().map(Into::into));
        self
    }

    /// Sets the name of an operation's tool within its toolkit.
    pub fn rename(mut self, operation: impl Into<String>, name: impl Into<String>) -> Self {
        self.names.insert(operation.into(), name.into());
        self
    }

    /// Sets the description of an operation's tool.
    pub fn describe(mut self, operation: impl Into<String>, text: impl Into<String>) -> Self {
        self.descriptions.insert(operation.into(), text.into());
        self
    }

    /// Sets the value of a parameter or of a field of the body, which models then neither see nor
    /// choose.
    pub fn fix(
        mut self,
        operation: impl Into<String>,
        name: impl Into<String>,
        value: Value,
    ) -> Self {
        let fixed = self.fixed.entry(operation.into()).or_default();
        fixed.insert(name.into(), value);
        self
    }

    /// Declares that operations only read although their methods do not say so: by their ids, or by
    /// patterns of their paths.
    pub fn reads<S: Into<String>>(mut self, operations: impl IntoIterator<Item = S>) -> Self {
        self.readers.extend(operations.into_iter().map(Into::into));
        self
    }

    /// Sets the URL that paths are appended to; needed if the document names none or several.
    pub fn base_url(mut self, url: impl Into<String>) -> Self {
        self.servers.base_url = Some(url.into());
        self
    }

    /// Allows other hosts that the document names for some of its operations.
    pub fn hosts<S: Into<String>>(mut self, hosts: impl IntoIterator<Item = S>) -> Self {
        self.servers.hosts.extend(hosts.into_iter().map(Into::into));
        self
    }

    /// Sets a variable of the document's server URLs.
    pub fn server_variable(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.servers.variables.insert(name.into(), value.into());
        self
    }

    /// Sets the id of the secret for a security scheme; by default it is made of both names, such as
    /// `FIGMA_PERSONAL_ACCESS_TOKEN`.
    pub fn secret(mut self, scheme: impl Into<String>, id: impl Into<String>) -> Self {
        self.credentials.secrets.insert(scheme.into(), id.into());
        self
    }

    /// Sends a secret as a bearer token with each request, whatever the document says.
    pub fn bearer(mut self, id: impl Into<String>) -> Self {
        self.credentials.bearer = Some(id.into());
        self
    }

    /// Prefers these security schemes where an operation has alternatives.
    pub fn security<S: Into<String>>(mut self, schemes: impl IntoIterator<Item = S>) -> Self {
        self.credentials
            .preferred
            .extend(schemes.into_iter().map(Into::into));
        self
    }

    /// Sends the call's id in a header by which the API recognizes repeated requests, such as
    /// `Idempotency-Key`.
    pub fn idempotency_header(mut self, name: impl Into<String>) -> Self {
        self.idempotency_header = Some(name.into());
        self
    }

    /// Allows an API at an address that is not reachable from the internet.
    pub fn allow_private(mut self) -> Self {
        self.allows_private = true;
        self
    }

    /// Serves tools to search, describe and call the operations, in place of one for each.
    pub fn searchable(mut self) -> Self {
        self.is_searchable = true;
        self
    }

    /// Allows more than 40 tools in one list.
    pub fn list_all(mut self) -> Self {
        self.lists_all = true;
        self
    }

    /// Returns true if operations are chosen: by tags, ids, paths, methods or all.
    #[must_use]
    pub fn has_choice(&self) -> bool {
        self.choice.is_made() || self.is_chosen_by_extensions()
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
    /// As [`reduce`](Self::reduce), and as [`ApiTools::tools`].
    pub fn tools(&self) -> Result<Vec<Tool>, OpenApiError> {
        self.reduce()?.tools.tools()
    }

    /// Reduces the chosen operations to tools.
    ///
    /// # Errors
    /// Nothing is chosen, or more than 40 operations without [`searchable`](Self::searchable) or
    /// [`list_all`](Self::list_all); the base URL is not known; an option names what the document does
    /// not have.
    pub fn reduce(&self) -> Result<Reduction, OpenApiError> {
        let operations = Operation::all(&self.document);
        self.check_id()?;
        self.choice.check(&operations)?;
        let chosen = self.chosen(&operations)?;
        let mut tools = ApiTools::new(
            self.document.title(),
            servers::base_url(&self.document, &self.servers)?,
        );
        let known = credentials_in(&self.document, &self.toolkit, &self.credentials);
        let mut report = Report {
            operations: operations.len(),
            chosen: chosen.len(),
            ..Report::default()
        };
        for operation in &chosen {
            match self.reduced(operation, &tools.base_url, &known, &mut report.notes) {
                Ok(tool) => tools.tools.push(tool),
                Err(reason) => report.left_out.push(Note::new(operation.label(), reason)),
            }
        }
        leave_out_namesakes(&mut tools.tools, &mut report.left_out);
        self.check_count(tools.len())?;
        tools.credentials = used(known, &tools.tools);
        tools.allow_private = self.allows_private;
        tools.searchable = self.is_searchable;
        tools
            .idempotency_header
            .clone_from(&self.idempotency_header);
        Ok(Reduction { tools, report })
    }

    fn chosen<'a>(
        &'a self,
        operations: &[Operation<'a>],
    ) -> Result<Vec<Operation<'a>>, OpenApiError> {
        if !self.has_choice() {
            let groups = self
                .tags()
                .into_iter()
                .map(|(name, count)| format!("{name} ({count})"));
            let groups = groups.collect::<Vec<_>>().join(", ");
            let text = format!(
                "no operations are chosen; choose by tags, ids, paths or methods: {groups}"
            );
            return Err(OpenApiError::new(text));
        }
        self.check_names(operations)?;
        let is_chosen = |it: &&Operation| self.choice.includes(it, it.extension(&self.document));
        Ok(operations.iter().filter(is_chosen).copied().collect())
    }

    fn is_chosen_by_extensions(&self) -> bool {
        let operations = Operation::all(&self.document);
        let only = Choice::default();
        operations
            .iter()
            .any(|it| only.includes(it, it.extension(&self.document)))
    }

    /// Checks that the operations exist that options are about.
    fn check_names(&self, operations: &[Operation]) -> Result<(), OpenApiError> {
        let named = self
            .names
            .keys()
            .chain(self.descriptions.keys())
            .chain(self.fixed.keys());
        let named = named.cloned().collect();
        let choice = Choice {
            operations: named,
            ..Choice::default()
        };
        choice.check(operations)
    }

    fn check_count(&self, count: usize) -> Result<(), OpenApiError> {
        if count == 0 {
            return Err(OpenApiError::new(
                "none of the operations is chosen and can be a tool",
            ));
        }
        if count <= MOST_TOOLS || self.is_searchable || self.lists_all {
            return Ok(());
        }
        Err(OpenApiError::new(format!(
            "{count} tools are more than the {MOST_TOOLS} that a model chooses well from: choose fewer \
             operations, make them searchable, or ask for a list of all"
        )))
    }

    fn reduced(
        &self,
        operation: &Operation,
        base_url: &str,
        known: &BTreeMap<String, Result<Credential, String>>,
        notes: &mut Vec<Note>,
    ) -> Result<ApiTool, String> {
        let credentials = needs_of(operation, &self.document, known, &self.credentials)?;
        let filled = credentials
            .keys()
            .filter_map(|it| known.get(it)?.as_ref().ok())
            .collect::<Vec<_>>();
        let nothing = Fixed::new();
        let fixed = said(&self.fixed, operation).unwrap_or(&nothing);
        let input = Input::of(operation, &self.document, &filled, fixed)?;
        let schema = Schema::from_value(input.schema.clone());
        schema
            .compile()
            .map_err(|error| format!("its input is not a valid JSON Schema: {error}"))?;
        let mut note = |text: &str| notes.push(Note::new(operation.label(), text));
        if is_undescribed(operation) && said(&self.descriptions, operation).is_none() {
            note("it has no description; describe it");
        }
        if input.is_cut {
            note(
                "parts of its input are left out, because they are too deep, too large or contain themselves",
            );
        }
        Ok(ApiTool {
            id: self.id_of(operation),
            operation: operation.label(),
            description: description_of(
                operation,
                said(&self.descriptions, operation),
                &input.notes,
            ),
            read_only: self.is_reader(operation),
            destructive: operation.method == "DELETE",
            credentials,
            request: RequestPlan {
                method: operation.method.to_owned(),
                path: operation.path.to_owned(),
                base_url: servers::own_url(operation, base_url, &self.servers)?,
                parameters: input.parameters,
                body: input.body,
                answer: answer_of(operation, &self.document),
            },
            input: input.schema,
        })
    }

    /// Returns the id of an operation's tool. A name without a letter or a digit names nothing.
    fn id_of(&self, operation: &Operation) -> String {
        let extension = operation.own_extension().and_then(|it| it.get("name"));
        let chosen = said(&self.names, operation).map(String::as_str);
        let names = [chosen, extension.and_then(Value::as_str), operation.id()];
        let names = names.into_iter().flatten().map(str::to_owned);
        let mut names = names.chain([operation.label()]);
        let tool =
            names.find_map(|it| Some(tool_of(&self.toolkit, &it)).filter(|it| !it.is_empty()));
        let tool = tool.unwrap_or_default();
        format!("{}.{tool}@{}", self.toolkit, self.version)
    }

    /// Checks what the owner has chosen for all ids.
    fn check_id(&self) -> Result<(), OpenApiError> {
        let id = format!("{}.A@{}", self.toolkit, self.version);
        let error = |_| {
            let text = "the toolkit must be letters, digits and underscores, and the version x.y.z";
            OpenApiError::new(text)
        };
        id.parse::<ToolId>().map(drop).map_err(error)
    }

    fn is_reader(&self, operation: &Operation) -> bool {
        let extension = operation.own_extension().and_then(|it| it.get("readOnly"));
        let is_said =
            |it: &String| choice::is(operation, it) || choice::matches(it, operation.path);
        extension
            .and_then(Value::as_bool)
            .unwrap_or_else(|| operation.is_safe() || self.readers.iter().any(is_said))
    }
}

/// Returns what is said about an operation by its id, or by its method and path.
fn said<'a, T>(all: &'a BTreeMap<String, T>, operation: &Operation) -> Option<&'a T> {
    let by_id = operation.id().and_then(|it| all.get(it));
    by_id.or_else(|| all.get(&operation.label()))
}

/// Leaves out tools of the same name: which of them a model would call must not depend on their order.
fn leave_out_namesakes(tools: &mut Vec<ApiTool>, left_out: &mut Vec<Note>) {
    let mut operations: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for tool in &*tools {
        let id = tool.id.to_ascii_lowercase();
        operations
            .entry(id)
            .or_default()
            .push(tool.operation.clone());
    }
    operations.retain(|_, all| all.len() > 1);
    tools.retain(|tool| !operations.contains_key(&tool.id.to_ascii_lowercase()));
    for all in operations.values() {
        for operation in all {
            let others: Vec<_> = all.iter().filter(|it| *it != operation).cloned().collect();
            let text = format!(
                "its name is also that of {}; rename one",
                others.join(" and ")
            );
            left_out.push(Note::new(operation.clone(), text));
        }
    }
}

/// Returns the credentials that the tools use.
fn used(
    known: BTreeMap<String, Result<Credential, String>>,
    tools: &[ApiTool],
) -> BTreeMap<String, Credential> {
    let is_used = |scheme: &String| tools.iter().any(|it| it.credentials.contains_key(scheme));
    let known = known.into_iter().filter(|(scheme, _)| is_used(scheme));
    known
        .filter_map(|(scheme, it)| Some((scheme, it.ok()?)))
        .collect()
}
