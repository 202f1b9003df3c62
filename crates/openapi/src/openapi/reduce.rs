//! The reduction of the chosen operations: each one becomes a tool, or is named with the reason.

use std::collections::BTreeMap;

use lambda_tools_core::{ToolId, tool::schema::Schema};
use serde_json::Value;

use super::{OpenApi, Reduction};
use crate::{
    ApiTools, Note, OpenApiError, Report,
    answer::answer_of,
    choice::{self, Choice},
    describe::{description_of, is_undescribed},
    input::{Fixed, Input},
    names::tool_of,
    operation::Operation,
    plan::{ApiTool, Credential, RequestPlan},
    security::{credentials_in, needs_of},
    servers,
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

    pub(super) fn is_chosen_by_extensions(&self) -> bool {
        let operations = Operation::all(&self.document);
        let only = Choice::default();
        operations
            .iter()
            .any(|it| only.includes(it, it.extension(&self.document)))
    }

    /// Checks that the operations that options name exist.
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
                "parts of its input are left out, because they are too deep, too large, contain themselves \
                 or are headers of the connection",
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
            destructive: (operation.own_extension())
                .and_then(|it| it.get("destructive")?.as_bool())
                .or((operation.method == "DELETE").then_some(true)),
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
        let is_said =
            |it: &String| choice::is(operation, it) || choice::matches(it, operation.path);
        extension
            .and_then(Value::as_bool)
            .unwrap_or_else(|| operation.is_safe() || self.readers.iter().any(is_said))
    }
}

/// Returns the value of an option for an operation, by its id, or by its method and path.
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
