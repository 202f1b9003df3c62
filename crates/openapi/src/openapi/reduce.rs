//! The reduction of the chosen operations: each one becomes a tool, or is named with the reason.

use std::collections::BTreeMap;

use lambda_tools_core::ToolId;
use lambda_tools_schema::{Schema, text::plain};
use serde_json::Value;

use super::{Note, OpenApi, Reduction, Report};
use crate::{
    ApiTools, OpenApiError, choice,
    input::{Fixed, Input},
    names::{distinct, function_in, tool_of},
    operation::Operation,
    parameters::Filled,
    plan::{ApiTool, FORMAT, Place, RequestPlan, scopes_of},
    security::{Known, credentials_in, needs_of, notes_on},
    servers,
    text::{description_of, first_paragraph, is_undescribed},
};

/// The maximum number of tools in a list: models choose worse among more.
const MOST_TOOLS: usize = 40;

impl OpenApi {
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
        self.servers.check(&self.document)?;
        self.credentials.check(&self.document)?;
        let chosen = self.chosen(&operations)?;
        let base_url = servers::base_url(&self.document, &self.servers)?;
        let known = credentials_in(&self.document, &self.toolkit, &base_url, &self.credentials);
        let mut report = Report {
            operations: operations.len(),
            chosen: chosen.len(),
            ..Report::default()
        };
        let (mut tools, mut names) = (Vec::new(), Vec::new());
        for operation in &chosen {
            match self.reduced(operation, &base_url, &known, &mut report.notes) {
                Ok(tool) => {
                    tools.push(tool);
                    names.push(self.names_of(operation));
                }
                Err(reason) => report.left_out.push(Note::new(operation.label(), reason)),
            }
        }
        let names = distinct(&self.toolkit, &names);
        for (tool, name) in tools.iter_mut().zip(names) {
            tool.id = format!("{}.{name}@{}", self.toolkit, self.version);
        }
        self.check_count(tools.len(), &report)?;
        let needed = scopes_of(&tools);
        let used = known.into_iter();
        let used = used.filter(|(scheme, _)| needed.contains_key(&**scheme));
        let used = used.filter_map(|(scheme, it)| Some((scheme, it.ok()?)));
        let credentials: BTreeMap<_, _> = used.collect();
        if self.credentials.bearer.is_none() {
            let notes = notes_on(&self.document, &credentials);
            report.notes.extend(notes);
        }
        let info = &self.document.root()["info"];
        let text = |field: &str| info[field].as_str().unwrap_or_default();
        let tools = ApiTools {
            format: FORMAT,
            title: plain(text("title")),
            version: plain(text("version")),
            description: first_paragraph(text("description")),
            base_url,
            allow_private: self.allows_private,
            searchable: self.is_searchable,
            idempotency_header: self.idempotency_header.clone(),
            credentials,
            tools,
            made_with: Vec::new(),
            checksum: String::new(),
        };
        Ok(Reduction { tools, report })
    }

    fn chosen<'a>(
        &'a self,
        operations: &[Operation<'a>],
    ) -> Result<Vec<Operation<'a>>, OpenApiError> {
        if !self.has_choice() {
            let groups = self.tags().into_iter();
            let groups = groups.map(|(name, count)| format!("{name} ({count})"));
            return Err(OpenApiError::new(format!(
                "no operations are chosen; choose by tags, ids, paths or methods: {}",
                groups.collect::<Vec<_>>().join(", ")
            )));
        }
        self.check_names(operations)?;
        let is_chosen = |it: &&Operation| self.choice.includes(it, it.extension(&self.document));
        Ok(operations.iter().filter(is_chosen).copied().collect())
    }

    /// Checks that the operations that options name exist.
    fn check_names(&self, operations: &[Operation]) -> Result<(), OpenApiError> {
        choice::check_operations("--rename", self.names.keys(), operations)?;
        choice::check_operations("--describe", self.descriptions.keys(), operations)?;
        choice::check_operations("--fix", self.fixed.keys(), operations)?;
        let is_there = |it: &&String| operations.iter().any(|one| is_said(one, it));
        let misspelt = self.readers.iter().filter(|it| !is_there(it));
        choice::check_operations("--reads", misspelt, operations)
    }

    fn check_count(&self, count: usize, report: &Report) -> Result<(), OpenApiError> {
        if report.chosen == 0 {
            let text =
                "no operation is left of those chosen by --include-method, --exclude and `x-mcp`";
            return Err(OpenApiError::new(text));
        }
        if count == 0 {
            let reasons = report.left_out.iter().take(3).map(ToString::to_string);
            let reasons = reasons.collect::<Vec<_>>().join("; ");
            return Err(OpenApiError::new(format!(
                "none of the {} chosen operations can be a tool: {reasons}",
                report.chosen
            )));
        }
        if count <= MOST_TOOLS || self.is_searchable || self.lists_all {
            return Ok(());
        }
        Err(OpenApiError::new(format!(
            "{count} tools are more than the {MOST_TOOLS} that a model chooses well from: choose fewer \
             operations, or serve them with --searchable or --list-all"
        )))
    }

    fn reduced(
        &self,
        operation: &Operation,
        base_url: &str,
        known: &Known,
        notes: &mut Vec<Note>,
    ) -> Result<ApiTool, String> {
        let (credentials, doubt) = needs_of(operation, &self.document, known, &self.credentials)?;
        let read_only = self.is_reader(operation);
        let used = credentials.keys();
        let used: Vec<_> = used.filter_map(|it| known.get(it)?.as_ref().ok()).collect();
        let own = used.iter().filter_map(|it| it.place());
        let header = self.idempotency_header.as_deref().filter(|_| !read_only);
        let filled: Vec<Filled> = own.chain(header.map(|it| (Place::Header, it))).collect();
        let nothing = Fixed::new();
        let fixed = said(&self.fixed, operation).unwrap_or(&nothing);
        let input = Input::of(operation, &self.document, &filled, fixed)?;
        let schema = Schema::from_value(input.schema.clone());
        let error = |error| format!("its input is not a valid JSON Schema: {error}");
        schema.compile().map_err(error)?;
        let mut note = |text: &str| notes.push(Note::new(operation.label(), text));
        let described = said(&self.descriptions, operation);
        if is_undescribed(operation) && described.is_none() {
            note("it has no description; describe it");
        }
        if input.is_cut {
            note(
                "parts of its input are left out, because they are too deep, too large, contain themselves \
                 or are headers of the connection",
            );
        }
        let is_authorization = |(place, name): (Place, &str)| {
            place == Place::Header && name.eq_ignore_ascii_case("authorization")
        };
        let mut places = used.iter().map(|it| it.place());
        if input.wants_authorization && !places.any(|it| it.is_none_or(is_authorization)) {
            note(
                "it wants the header Authorization, and no security scheme says so; --bearer SECRET_ID sends it",
            );
        }
        doubt.iter().chain(&input.doubts).for_each(|it| note(it));
        Ok(ApiTool {
            id: String::new(),
            operation: operation.label(),
            description: description_of(operation, described, &input.notes),
            read_only,
            destructive: (operation.own_extension())
                .and_then(|it| it.get("destructive")?.as_bool())
                .or((operation.method == "DELETE").then_some(true)),
            credentials,
            one_of: input.one_of,
            request: RequestPlan {
                method: operation.method.to_owned(),
                path: match operation.path {
                    path if path.starts_with('/') => path.to_owned(),
                    path => format!("/{path}"),
                },
                base_url: servers::own_url(operation, base_url, &self.servers)?,
                parameters: input.parameters,
                body: input.body,
                answer: operation.answer(&self.document),
            },
            input: input.schema,
        })
    }

    /// Returns the names that an operation's tool may have within its toolkit, the best first. One
    /// without a letter or a digit names nothing.
    fn names_of(&self, operation: &Operation) -> Vec<String> {
        let extension = operation.own_extension().and_then(|it| it.get("name"));
        let chosen = said(&self.names, operation).map(String::as_str);
        let named = |it: &str| Some(tool_of(&self.toolkit, it)).filter(|it| !it.is_empty());
        let said = chosen.or(extension.and_then(Value::as_str));
        if let Some(name) = said.and_then(named) {
            return vec![name];
        }
        let id = operation.id().unwrap_or_default();
        let summary = operation.text("summary").unwrap_or_default();
        let function = function_in(id, operation.path, summary);
        let by_method = format!("{function} {}", operation.method.to_ascii_lowercase());
        let all = [function, id, &by_method].into_iter().filter_map(named);
        match all.collect::<Vec<_>>() {
            all if all.len() > 1 => all,
            _ => named(&operation.label()).into_iter().collect(),
        }
    }

    /// Checks the toolkit's name and the version, which all ids share.
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
        extension.and_then(Value::as_bool).unwrap_or_else(|| {
            operation.is_safe() || self.readers.iter().any(|it| is_said(operation, it))
        })
    }
}

/// Returns true if `--reads` names the operation: by its id, or by a pattern of its path.
fn is_said(operation: &Operation, name: &str) -> bool {
    choice::is(operation, name) || choice::matches(name, operation.path)
}

/// Returns the value of an option for an operation, by its id, or by its method and path.
fn said<'a, T>(all: &'a BTreeMap<String, T>, operation: &Operation) -> Option<&'a T> {
    let by_id = operation.id().and_then(|it| all.get(it));
    by_id.or_else(|| all.get(&operation.label()))
}
