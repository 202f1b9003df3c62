//! Serving reduced tools: a call becomes a request to the API, and the response an answer.

mod client;
mod credentials;
mod cut;
mod encode;
mod failure;
mod multipart;
mod request;
mod response;
mod search;

use std::{
    collections::BTreeSet,
    mem,
    sync::{Arc, OnceLock},
    time::Duration,
};

use lambda_tools_core::{Context, Failure, Tool};
use lambda_tools_schema::{ParameterErrors, inline::sentence_on};
use serde_json::{Value, json};

use crate::{
    ApiTools, OpenApiError,
    plan::{Answer, ApiTool, Credential, Place, scopes_of},
};

/// The state that the tools of an API share.
pub(crate) struct Api {
    pub(crate) settings: ApiTools,
    client: OnceLock<Option<reqwest::Client>>,
    tokens: credentials::Tokens,
}

impl ApiTools {
    /// Returns the tools, to be served alone or with others. It parses no document, and connects to
    /// nothing.
    ///
    /// # Errors
    /// A URL that does not use TLS, or whose host is an address that is not reachable from the
    /// internet, without [`allow_private`](Self::allow_private).
    pub fn tools(mut self) -> Result<Vec<Tool>, OpenApiError> {
        client::check_urls(&self)?;
        let tools = mem::take(&mut self.tools);
        let api = Arc::new(Api {
            client: OnceLock::new(),
            tokens: credentials::Tokens::default(),
            settings: self,
        });
        if api.settings.searchable {
            return Ok(search::tools(&api, tools));
        }
        Ok(tools.into_iter().map(|tool| tool_of(&api, tool)).collect())
    }
}

fn tool_of(api: &Arc<Api>, mut plan: ApiTool) -> Tool {
    let (id, description) = (mem::take(&mut plan.id), mem::take(&mut plan.description));
    let input = taken_input(&mut plan);
    let plan = Arc::new(plan);
    let (shared, call) = (Arc::clone(api), Arc::clone(&plan));
    let run = move |input: Value, cx: Context| {
        let (api, plan) = (Arc::clone(&shared), Arc::clone(&call));
        async move { api.call(&plan, input, &cx).await }
    };
    let mut tool = Tool::dynamic(id, description, input, json!({}), run).formats_are_annotations();
    if !plan.one_of.is_empty() {
        let checked = Arc::clone(&plan);
        tool = tool.checked(move |input| one_of(&checked, &input).map(|()| input));
    }
    let tool = with_requirements(tool, api, [&*plan]);
    let tool = match plan.request.answer {
        Answer::Content(_) => tool.returning_content(),
        _ => tool,
    };
    if plan.read_only {
        return tool.read_only(true).idempotent();
    }
    let tool = tool.read_only(false);
    let once = plan.once.map(Duration::from_secs);
    let tool = once.into_iter().fold(tool, Tool::once_within);
    plan.destructive.into_iter().fold(tool, Tool::destructive)
}

/// Takes the schema of the input out of a plan, whose parameters keep theirs.
fn taken_input(plan: &mut ApiTool) -> Value {
    let input = mem::take(&mut plan.input);
    // Only the next page of a query has values to convert.
    for it in &mut plan.request.parameters {
        if it.place == Place::Query
            && let Some(key) = &it.key
        {
            it.schema = input["properties"][key].clone();
        }
    }
    input
}

/// Checks that an input has one of the sets of properties that its body needs.
fn one_of(plan: &ApiTool, input: &Value) -> Result<(), ParameterErrors> {
    let is_there = |set: &Vec<String>| set.iter().all(|name| input.get(name).is_some());
    let is_needed = plan.request.body.as_ref().is_some_and(|it| it.required);
    if !is_needed || plan.one_of.is_empty() || plan.one_of.iter().any(is_there) {
        return Ok(());
    }
    let error = ("input".to_owned(), sentence_on(&plan.one_of));
    Err(ParameterErrors::from([error]))
}

/// Declares the secrets and the authorizations of tools.
fn with_requirements<'a>(
    mut tool: Tool,
    api: &Api,
    plans: impl IntoIterator<Item = &'a ApiTool>,
) -> Tool {
    let mut secrets = BTreeSet::new();
    for (scheme, scopes) in scopes_of(plans) {
        let Some(credential) = api.settings.credentials.get(scheme) else {
            continue;
        };
        secrets.extend(credential.secrets());
        if let Credential::User {
            provider,
            token_url,
            ..
        } = credential
        {
            let tool_of_user = tool.authorization(provider, scopes).user_id();
            tool = tool_of_user.token_url(token_url);
        }
    }
    secrets.into_iter().fold(tool, Tool::secret)
}

impl Api {
    /// Returns the URL of the API to which the requests of a tool go.
    fn base_of<'a>(&'a self, plan: &'a ApiTool) -> &'a String {
        let own = plan.request.base_url.as_ref();
        own.unwrap_or(&self.settings.base_url)
    }

    /// Sends the request of a call.
    pub(crate) async fn call(
        &self,
        plan: &ApiTool,
        input: Value,
        cx: &Context,
    ) -> Result<Value, Failure> {
        let mut request = request::request_of(&plan.request, self.base_of(plan), input)?;
        if let Some(name) = &self.settings.idempotency_header
            && !plan.read_only
        {
            request::add_header(&mut request, name, cx.call_id())?;
        }
        let (first, _) = self.with_credentials(&request, plan, cx, false).await?;
        let mut response = self.send(first, plan, cx).await?;
        if response.status().as_u16() == 401
            && let (second, true) = self.with_credentials(&request, plan, cx, true).await?
        {
            response = self.send(second, plan, cx).await?;
        }
        response::value_of(response, plan, self.may_repeat(plan), cx).await
    }

    /// Returns true if a call of the tool may be repeated although it may have had its effect.
    pub(crate) fn may_repeat(&self, plan: &ApiTool) -> bool {
        plan.read_only || self.settings.idempotency_header.is_some()
    }
}
