//! A function whose tools keep what they are called with.

use std::{
    collections::BTreeMap,
    future::ready,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use lambda_tools::{
    Context, Failure, Server, Tool, ToolDefinition, Toolkit, http::HeaderMap,
    idempotency::Idempotency, testing::LambdaFunction,
};
use lambda_tools_core::clock::FIXED_ID;
use serde_json::{Value, json};

use crate::{event::event_of, runtime::wait, store::ResettableStore};

/// A call as its tool gets it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ToolCall {
    /// The tool's id.
    pub(crate) tool: String,
    /// `None` if the client sent no id.
    pub(crate) call_id: Option<String>,
    pub(crate) trace_id: Option<String>,
    pub(crate) input: Value,
    pub(crate) user_id: Option<String>,
    /// The tokens by provider.
    pub(crate) tokens: BTreeMap<String, String>,
    /// The secrets by id.
    pub(crate) secrets: BTreeMap<String, String>,
}

/// A tool that takes any input, with the tokens and secrets that it requires.
#[derive(Clone)]
pub(crate) struct EchoTool {
    pub(crate) id: String,
    pub(crate) providers: Vec<String>,
    pub(crate) secrets: Vec<String>,
}

impl From<ToolDefinition> for EchoTool {
    fn from(definition: ToolDefinition) -> Self {
        let requirements = definition.requirements;
        let providers = requirements.authorization.into_iter().map(|it| it.id);
        let secrets = requirements.secrets.into_iter().map(|it| it.id);
        Self {
            id: definition.id,
            providers: providers.collect(),
            secrets: secrets.collect(),
        }
    }
}

/// The last call, until it is taken.
type LastCall = Arc<Mutex<Option<ToolCall>>>;

fn lock(last: &LastCall) -> MutexGuard<'_, Option<ToolCall>> {
    last.lock().unwrap_or_else(PoisonError::into_inner)
}

impl EchoTool {
    fn call(&self, input: Value, cx: &Context) -> Result<ToolCall, Failure> {
        let call_id = Some(cx.call_id()).filter(|id| *id != FIXED_ID.to_string());
        let tokens = self.providers.iter().map(|provider| {
            let token = cx.token(provider)?.expose();
            Ok((provider.clone(), token.to_owned()))
        });
        let secrets = self.secrets.iter().map(|id| {
            let secret = cx.secret(id)?.expose();
            Ok((id.clone(), secret.to_owned()))
        });
        Ok(ToolCall {
            tool: self.id.clone(),
            call_id: call_id.map(str::to_owned),
            trace_id: cx.trace_id().map(str::to_owned),
            input,
            user_id: cx.user_id().map(str::to_owned),
            tokens: tokens.collect::<Result<_, Failure>>()?,
            secrets: secrets.collect::<Result<_, Failure>>()?,
        })
    }

    fn keeping(self, last: &LastCall) -> Tool {
        let (tool, last) = (self.clone(), Arc::clone(last));
        let keep = move |input: Value, cx: Context| {
            let call = tool.call(input, &cx);
            ready(call.map(|call| {
                *lock(&last) = Some(call);
                Value::Null
            }))
        };
        let open = json!({"type": "object"});
        let tool = Tool::dynamic(self.id, "Keeps its call.", open, json!({}), keep);
        let providers = self.providers.into_iter();
        let tool = providers.fold(tool, |tool, it| tool.authorization(it, [""; 0]));
        self.secrets.into_iter().fold(tool, Tool::secret)
    }
}

pub(crate) struct EchoFunction {
    function: LambdaFunction,
    store: ResettableStore,
    last: LastCall,
}

impl EchoFunction {
    pub(crate) fn new(tools: impl IntoIterator<Item = EchoTool>) -> Self {
        let last = LastCall::default();
        let tools = tools.into_iter().map(|tool| tool.keeping(&last));
        let toolkit = Toolkit::new(tools).expect("the tools are valid");
        // Over MCP, only a server that recognizes repeated calls has ids of calls.
        let store = ResettableStore::default();
        let server = Server::new(toolkit).idempotency(Idempotency::in_store(store.clone()));
        Self {
            function: LambdaFunction::new(server),
            store,
            last,
        }
    }

    /// Returns the call that a request leads to, or the response to a request that calls no tool.
    pub(crate) fn call(
        &self,
        path: &str,
        headers: &HeaderMap,
        body: &[u8],
    ) -> Result<ToolCall, String> {
        self.store.reset();
        let event = event_of(path, headers, body).to_string();
        let response = wait(self.function.invoke(&event));
        let called = lock(&self.last).take();
        called.ok_or_else(|| format!("{response:?}"))
    }
}
