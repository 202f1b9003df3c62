//! The parts of a tool, as the library uses them.

use std::{borrow::Cow, future::Future, panic::Location, pin::Pin, time::Duration};

use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use super::{
    caller::CallerRule,
    handler::{Handler, IntoFailure},
    output,
    reason::Reason,
    repeats::RepeatPolicy,
    schema::{
        ParameterErrors, Schema,
        decode::{DecodeError, decode_input},
    },
};
use crate::{Context, Failure, Requirements};

/// A tool with its decoded input, ready to run with a context.
pub type Run = Box<dyn FnOnce(Context) -> RunFuture + Send>;
/// The call of a tool, which ends with its output or its failure.
pub type RunFuture = Pin<Box<dyn Future<Output = Result<Value, Failure>> + Send>>;
type DecodeFn = Box<dyn Fn(Value) -> Result<Run, DecodeError> + Send + Sync>;
pub(super) type CheckFn = Box<dyn Fn(Value) -> Result<Value, ParameterErrors> + Send + Sync>;

/// The author's hints to clients about a tool's behaviour.
#[derive(Clone, Copy, Default)]
pub struct Hints {
    /// Whether the tool only reads.
    pub is_read_only: Option<bool>,
    /// Whether it may delete or overwrite something.
    pub is_destructive: Option<bool>,
    /// Whether it interacts with an open set of external systems.
    pub is_open_world: Option<bool>,
}

/// A tool's support for tasks: whether its calls may outlast their requests.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub enum TaskSupport {
    /// They end within their requests.
    #[default]
    Never,
    /// They may.
    Optional,
    /// They always do: the caller has to take a task.
    Required,
}

/// The parts of a [`Tool`](crate::Tool).
pub struct ToolParts {
    /// The id, as its author wrote it.
    pub id: Cow<'static, str>,
    /// The name that models see, if it is not `Toolkit_Tool`.
    pub name: Option<String>,
    /// The description, if it is not that of the input's type.
    pub description: Option<String>,
    /// The schema of the input.
    pub input: Schema,
    /// The schema of the output; `null` for a tool that returns nothing.
    pub output: Schema,
    /// True if the output is [`Content`](crate::Content), or a list of it.
    pub returns_content: bool,
    /// The secrets, tokens and user that a call needs.
    pub requirements: Requirements,
    /// The time limit of a call, if it is not the default.
    pub timeout: Option<Duration>,
    /// The policy for repeated calls.
    pub policy: RepeatPolicy,
    /// The title that people see.
    pub title: Option<String>,
    /// The author's hints to clients.
    pub hints: Hints,
    /// The scopes that a caller's token must have.
    pub scopes: Vec<String>,
    /// The rules of which one must apply to a caller; `None` if anyone may call who has the scopes.
    pub allowed: Option<Vec<CallerRule>>,
    /// The time for which equal calls without an id are one call.
    pub once_within: Option<Duration>,
    pub(crate) defined_at: &'static Location<'static>,
    /// Whether calls may outlast their requests.
    pub tasks: TaskSupport,
    /// True if the function is not async, and runs on a thread of its own.
    pub blocks: bool,
    decode: DecodeFn,
    /// A check of what the schema does not say.
    pub(super) check: Option<CheckFn>,
}

impl ToolParts {
    #[track_caller]
    pub(super) fn new<H, A: 'static>(
        id: Cow<'static, str>,
        input: Schema,
        output: Schema,
        handler: H,
    ) -> Self
    where
        H: Handler<A>,
        H::In: DeserializeOwned + Send + 'static,
        H::Out: Serialize + 'static,
        H::Error: IntoFailure,
        H::Future: Send + 'static,
    {
        Self {
            id,
            name: None,
            description: None,
            input,
            output,
            returns_content: false,
            requirements: Requirements::default(),
            timeout: None,
            policy: RepeatPolicy::default(),
            title: None,
            hints: Hints::default(),
            scopes: Vec::new(),
            allowed: None,
            once_within: None,
            tasks: TaskSupport::default(),
            defined_at: Location::caller(),
            blocks: H::BLOCKS,
            decode: Box::new(move |input| {
                let (input, handler): (H::In, _) = (decode_input(input)?, handler.clone());
                Ok(Box::new(move |context| {
                    Box::pin(run(handler, input, context))
                }))
            }),
            check: None,
        }
    }

    /// Decodes an input that satisfies the schema. The error has the reasons of the tool's own check, or
    /// of its type.
    pub fn decode(&self, mut input: Value) -> Result<Run, ParameterErrors> {
        if let Some(check) = &self.check {
            input = check(input)?;
        }
        (self.decode)(input).map_err(|error| error.explained(self.input.value()))
    }
}

async fn run<H, A>(handler: H, input: H::In, context: Context) -> Result<Value, Failure>
where
    H: Handler<A>,
    H::Out: Serialize,
    H::Error: IntoFailure,
{
    let output = handler.call(input, context).await;
    let output = output.map_err(IntoFailure::into_failure)?;
    output::to_value(&output).map_err(|error| {
        Failure::internal(
            Reason::InvalidOutput,
            "The tool returned a result that cannot be sent",
        )
        .developer_message(format!("The output is not JSON: {error}"))
    })
}
