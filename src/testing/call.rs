//! Calls without an event, a protocol or HTTP.

use std::{
    collections::BTreeMap,
    future::{Future, IntoFuture},
    pin::Pin,
    sync::Arc,
    time::SystemTime,
};

use http::HeaderMap;
use serde_json::Value;

use super::LambdaFunction;
use crate::{
    Caller, Failure, Secret, Server,
    arrival::{Arrival, Invocation},
    call::{Background, Call, ClientContext, Engine, rejection::Rejection},
    observe::trail::Trail,
    protocol::wording::Wording,
    tool::{id::Selector, output::Output, reason::Reason},
};

/// Calls a tool as a client would, with everything that the server does with a call: validation,
/// requirements, the time limit, the check of the output. The caller's credentials are not checked.
/// As in [`LambdaFunction::new`], the clock is fixed and environment variables are ignored.
///
/// ```
/// use lambda_tools::{Server, prelude::*, secrets::Secrets, testing};
/// use serde::Deserialize;
/// use serde_json::json;
///
/// /// Returns the price of an article.
/// #[derive(Deserialize, JsonSchema)]
/// struct Price {
///     /// The article's number.
///     article: u32,
/// }
///
/// async fn price(input: Price, cx: Context) -> Result<String, Failure> {
///     let _key = cx.secret("SHOP_KEY")?;
///     Ok(format!("{} EUR", input.article))
/// }
///
/// # tokio::runtime::Runtime::new()?.block_on(async {
/// # // In a test, this is a function with #[tokio::test].
/// let shop = || -> Result<Server, lambda_tools::BuildError> {
///     let tools = Toolkit::new([Tool::new("Shop.Price@1.0.0", price).secret("SHOP_KEY")])?;
///     Ok(Server::new(tools).secrets(Secrets::fixed([("SHOP_KEY", "a key")])))
/// };
/// let outcome = testing::call(shop()?, "Shop.Price", json!({"article": 7})).await;
/// assert_eq!(outcome.value(), "7 EUR");
///
/// let rejection = testing::call(shop()?, "Shop.Price", json!({"article": "tea"})).await.rejection();
/// assert_eq!(rejection.parameter_errors["article"], "Must be an integer");
/// # Ok::<(), lambda_tools::BuildError>(())
/// # })?;
/// # Ok::<(), lambda_tools::Error>(())
/// ```
///
/// [`LambdaFunction::call`] makes several calls to one server.
pub fn call(server: impl Into<Server>, tool: impl Into<String>, input: Value) -> TestCall {
    LambdaFunction::new(server).call(tool, input)
}

/// A call in a test; see [`call`](call()). It is made when it is awaited.
#[must_use = "a call is made when it is awaited"]
pub struct TestCall {
    pub(super) engine: Arc<Engine>,
    pub(super) tool: String,
    pub(super) input: Value,
    pub(super) call_id: Option<String>,
    pub(super) caller: Caller,
    pub(super) context: ClientContext,
    pub(super) deadline: Option<SystemTime>,
}

impl TestCall {
    /// Sets the `call_id`, by which a server with [`Server::idempotency`] recognizes repeated
    /// calls.
    pub fn call_id(mut self, id: impl Into<String>) -> Self {
        self.call_id = Some(id.into());
        self
    }

    /// Sets the caller: by default, anyone.
    pub fn caller(mut self, caller: Caller) -> Self {
        self.caller = caller;
        self
    }

    /// Sets the user that the tool acts for.
    pub fn user_id(mut self, id: impl Into<String>) -> Self {
        self.context.user_id = Some(id.into());
        self
    }

    /// Adds the user's token for a provider.
    pub fn token(mut self, provider: impl Into<String>, value: impl Into<Secret>) -> Self {
        self.context.tokens.insert(provider.into(), value.into());
        self
    }

    /// Adds a secret that the call brings. Those of the server are set with [`Server::secrets`].
    pub fn secret(mut self, id: impl Into<String>, value: impl Into<Secret>) -> Self {
        self.context.secrets.insert(id.into(), value.into());
        self
    }

    /// Sets the time at which the platform stops waiting for the response.
    #[doc(hidden)]
    pub fn deadline(mut self, deadline: SystemTime) -> Self {
        self.deadline = Some(deadline);
        self
    }
}

impl IntoFuture for TestCall {
    type Output = TestOutcome;
    type IntoFuture = Pin<Box<dyn Future<Output = TestOutcome> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        let rejected = |reason: Reason, wording: Wording, parameter_errors| {
            TestOutcome::Rejection(TestRejection {
                reason: reason.as_str(),
                message: wording.message,
                developer_message: wording.detail,
                parameter_errors,
            })
        };
        Box::pin(async move {
            let selector = match self.tool.parse::<Selector>() {
                Ok(selector) => selector,
                Err(error) => {
                    let wording = Wording::invalid_tool_id(&error, None);
                    return rejected(Reason::InvalidToolId, wording, BTreeMap::new());
                }
            };
            let invocation = Arc::new(Invocation {
                deadline: self.deadline,
                ..Invocation::default()
            });
            let mut trail = Trail::new(&HeaderMap::new(), &invocation, None);
            let at = self.engine.clock.instant();
            let arrival = Arrival { at, invocation };
            let call = Box::new(Call {
                call_id: self.call_id,
                client_context: self.context,
                background: Background::InPlace,
                ..Call::new(selector, self.input)
            });
            let run = self.engine.call(call, arrival, self.caller, &mut trail);
            match run.await.map(|outcome| outcome.result) {
                Ok(Ok(Output::Value(value))) => TestOutcome::Value(value),
                Ok(Ok(Output::Json(json))) => {
                    let value = serde_json::from_str(json.get());
                    TestOutcome::Value(value.expect("recorded JSON is valid"))
                }
                Ok(Err(failure)) => TestOutcome::Failure(failure),
                Err(rejection) => {
                    let wording = Wording::rejected(&rejection, None);
                    let reason = rejection.reason();
                    let errors = match rejection {
                        Rejection::InvalidInput(errors) => errors,
                        _ => BTreeMap::new(),
                    };
                    rejected(reason, wording, errors)
                }
            }
        })
    }
}

/// The result of a call in a test.
#[derive(Debug)]
#[non_exhaustive]
pub enum TestOutcome {
    /// The tool's output, as JSON.
    Value(Value),
    /// The tool ran, or began to, and the call failed.
    Failure(Failure),
    /// The call did not reach its tool.
    Rejection(TestRejection),
}

impl TestOutcome {
    /// Returns the tool's output.
    ///
    /// # Panics
    /// If the call failed or was rejected.
    #[must_use]
    #[track_caller]
    pub fn value(self) -> Value {
        match self {
            Self::Value(value) => value,
            other => panic!("the call has no value: {other:#?}"),
        }
    }

    /// Returns the failure.
    ///
    /// # Panics
    /// If the call succeeded or was rejected.
    #[track_caller]
    pub fn failure(self) -> Failure {
        match self {
            Self::Failure(failure) => failure,
            other => panic!("the call did not fail: {other:#?}"),
        }
    }

    /// Returns the rejection.
    ///
    /// # Panics
    /// If the call reached its tool.
    #[must_use]
    #[track_caller]
    pub fn rejection(self) -> TestRejection {
        match self {
            Self::Rejection(rejection) => rejection,
            other => panic!("the call was not rejected: {other:#?}"),
        }
    }
}

/// The reason why a call in a test did not reach its tool.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TestRejection {
    /// The reason in the log, such as `invalid_input` or `missing_requirements`.
    pub reason: &'static str,
    /// The message for the user and the model.
    pub message: String,
    /// The message for developers; `None` if the parameters' own errors say it.
    pub developer_message: Option<String>,
    /// A message for each invalid parameter, by its path, such as `items[2].number`.
    pub parameter_errors: BTreeMap<String, String>,
}
