//! The reduction of the chosen operations: each one becomes a tool, or is named with the reason.

use std::collections::BTreeMap;

use lambda_tools_core::ToolId;
use lambda_tools_schema::{Schema, text::plain};
use serde_json::{Map, Value};

use super::{Note, OpenApi, Reduction, Report};
use crate::{
    ApiTools, OpenApiError, choice,
    input::Input,
    names::{distinct, function_in, tool_of, toolkit_of},
    operation::Operation,
    parameters::Filled,
    plan::{ApiTool, FORMAT, Place, RequestPlan, scopes_of},
    security::{self, Known, credentials_in, needs_of, notes_on},
    servers,
    text::{description_of, first_paragraph, is_undescribed},
};

/// The maximum number of tools in a list: models choose worse among more.
const MOST_TOOLS: usize = 40;

impl OpenApi {
    /// Reduces the chosen operations to tools.
    ///
    /// # Errors
    /// Nothing is chosen, or more than 40 operations without `searchable` or `list_all`; the base URL is
    /// not known; an option names what the document does not have.
    pub fn reduce(&self) -> Result<Reduction, OpenApiError> {
        let (document, options) = (&self.document, &self.options);
        let operations = Operation::all(document);
        let info = &document.root()["info"];
        let text = |field: &str| info[field].as_str().unwrap_or_default();
        let toolkit = options.toolkit.clone();
        let toolkit = &toolkit.unwrap_or_else(|| toolkit_of(text("title")));
        let version = options.tool_version.as_deref().unwrap_or("1.0.0");
        check_id(toolkit, version)?;
        choice::check(options, &operations)?;
        servers::check(options, document)?;
        security::check(options, document)?;
        let chosen = self.chosen(&operations)?;
        let base_url = servers::base_url(document, options)?;
        let known = credentials_in(document, toolkit, &base_url, options);
        let mut report = Report {
            operations: operations.len(),
            chosen: chosen.len(),
            ..Report::default()
        };
        let is_once = |it: &&Operation| said(&options.once, it).is_some();
        if let Some(reader) = chosen.iter().filter(is_once).find(|it| self.is_reader(it)) {
            let text = format!(
                "{}: --once is for operations with an effect",
                reader.label()
            );
            return Err(OpenApiError::new(text));
        }
        let (mut tools, mut names) = (Vec::new(), Vec::new());
        for operation in &chosen {
            match self.reduced(operation, &base_url, &known, &mut report.notes) {
                Ok(tool) => {
                    tools.push(tool);
                    names.push(self.names_of(operation, toolkit));
                }
                Err(reason) => report.left_out.push(Note::new(operation.label(), reason)),
            }
        }
        let names = distinct(toolkit, &names);
        for (tool, name) in tools.iter_mut().zip(names) {
            tool.id = format!("{toolkit}.{name}@{version}");
        }
        self.check_count(tools.len(), &report)?;
        let needed = scopes_of(&tools);
        let used = known.into_iter();
        let used = used.filter(|(scheme, _)| needed.contains_key(&**scheme));
        let used = used.filter_map(|(scheme, it)| Some((scheme, it.ok()?)));
        let credentials: BTreeMap<_, _> = used.collect();
        if options.bearer.is_none() {
            report.notes.extend(notes_on(document, &credentials));
        }
        let tools = ApiTools {
            format: FORMAT,
            title: plain(text("title")),
            version: plain(text("version")),
            description: first_paragraph(text("description")),
            base_url,
            allow_private: options.allow_private,
            searchable: options.searchable,
            idempotency_header: options.idempotency_header.clone(),
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
        let is_chosen = |it: &&Operation| choice::includes(&self.options, it, &self.document);
        Ok(operations.iter().filter(is_chosen).copied().collect())
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
        if count <= MOST_TOOLS || self.options.searchable || self.options.list_all {
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
        let (document, options) = (&self.document, &self.options);
        let (credentials, doubt) = needs_of(operation, document, known, options)?;
        let read_only = self.is_reader(operation);
        let used = credentials.keys();
        let used: Vec<_> = used.filter_map(|it| known.get(it)?.as_ref().ok()).collect();
        let own = used.iter().filter_map(|it| it.place());
        let header = options.idempotency_header.as_deref().filter(|_| !read_only);
        let filled: Vec<Filled> = own.chain(header.map(|it| (Place::Header, it))).collect();
        let nothing = Map::new();
        let fixed = said(&options.fix, operation).unwrap_or(&nothing);
        let input = Input::of(operation, document, &filled, fixed)?;
        let schema = Schema::from_value(input.schema.clone());
        let error = |error| format!("its input is not a valid JSON Schema: {error}");
        schema.compile().map_err(error)?;
        let mut note = |text: &str| notes.push(Note::new(operation.label(), text));
        let described = said(&options.describe, operation);
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
            once: said(&options.once, operation).copied(),
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
                base_url: servers::own_url(operation, base_url, options)?,
                parameters: input.parameters,
                body: input.body,
                answer: operation.answer(document),
            },
            input: input.schema,
        })
    }

    /// Returns the names that an operation's tool may have within its toolkit, the best first. One
    /// without a letter or a digit names nothing.
    fn names_of(&self, operation: &Operation, toolkit: &str) -> Vec<String> {
        let extension = operation.own_extension().and_then(|it| it.get("name"));
        let chosen = said(&self.options.rename, operation).map(String::as_str);
        let named = |it: &str| Some(tool_of(toolkit, it)).filter(|it| !it.is_empty());
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

    fn is_reader(&self, operation: &Operation) -> bool {
        let extension = operation.own_extension().and_then(|it| it.get("readOnly"));
        let is_said = || {
            self.options
                .reads
                .iter()
                .any(|it| choice::reads(operation, it))
        };
        extension
            .and_then(Value::as_bool)
            .unwrap_or_else(|| operation.is_safe() || is_said())
    }
}

/// Checks the toolkit's name and the version, which all ids share.
fn check_id(toolkit: &str, version: &str) -> Result<(), OpenApiError> {
    let error = |_| {
        let text = "the toolkit must be letters, digits and underscores, and the version x.y.z";
        OpenApiError::new(text)
    };
    let id = format!("{toolkit}.A@{version}").parse::<ToolId>();
    id.map(drop).map_err(error)
}

/// Returns the value of an option for an operation, by its id, or by its method and path.
fn said<'a, T>(all: &'a BTreeMap<String, T>, operation: &Operation) -> Option<&'a T> {
    let by_id = operation.id().and_then(|it| all.get(it));
    by_id.or_else(|| all.get(&operation.label()))
}
