//! The functions that can be tools: `fn(In)` and `fn(In, Context)`, async or not, with a shared state
//! in front or without.
//!
//! The signature is the source of truth: the schemas come from its types. Sealed traits instead of
//! a macro keep compiler errors ordinary and leave the function callable from a unit test.

use std::future::{Future, Ready, ready};

use schemars::JsonSchema;
use serde::{Serialize, de::DeserializeOwned};

use crate::{Context, Failure};
use sealed::{Async, Plain, Returned};

/// The return type of a function, by which async functions differ from others.
mod sealed {
    pub struct Async;
    pub struct Plain;

    /// The value that a function of this kind returns.
    pub trait Returned<K> {
        /// True if the function may block its thread.
        const BLOCKS: bool;
        type Out;
        type Error;
        type Future: Future<Output = Result<Self::Out, Self::Error>>;

        fn into_future(self) -> Self::Future;
    }
}

impl<F: Future<Output = Result<Out, E>>, Out, E> Returned<Async> for F {
    const BLOCKS: bool = false;
    type Out = Out;
    type Error = E;
    type Future = F;

    fn into_future(self) -> F {
        self
    }
}

impl<Out, E> Returned<Plain> for Result<Out, E> {
    const BLOCKS: bool = true;
    type Out = Out;
    type Error = E;
    type Future = Ready<Self>;

    fn into_future(self) -> Ready<Self> {
        ready(self)
    }
}

/// A function that can be a tool.
///
/// Implemented for functions and closures, async or not, that take the input, or the input and a
/// [`Context`], and return a `Result` whose error is a [`Failure`] or [becomes one](IntoFailure). It
/// cannot be implemented for other types.
#[diagnostic::on_unimplemented(
    message = "this function cannot be a tool",
    label = "not a function, async or not, of `Input` or of `Input` and `Context` that returns `Result<Output, Failure>`",
    note = "the parameters must be owned; the first one is the input, a struct; the error must be \
            `lambda_tools::Failure` or implement `IntoFailure`; a closure must be `Clone` and name \
            its parameters' types"
)]
pub trait Handler<Arguments>: Clone + Send + Sync + 'static {
    /// The tool's input.
    type In;
    /// The tool's output.
    type Out;
    /// The tool's error.
    type Error;
    /// The function's future; ready if the function is not async.
    type Future: Future<Output = Result<Self::Out, Self::Error>>;
    /// True if the function may block its thread, because it is not async.
    const BLOCKS: bool;

    /// Runs the tool.
    fn call(self, input: Self::In, context: Context) -> Self::Future;
}

/// A function that can be a tool with a shared state: a [`Handler`] with the state in front.
#[diagnostic::on_unimplemented(
    message = "this function cannot be a tool with the state `{State}`",
    label = "not a function, async or not, of `State` and `Input`, or of these and `Context`, that returns `Result<Output, Failure>`",
    note = "the first parameter is the state, owned and of the type that is passed to \
            `Tool::with_state`; the error must be `lambda_tools::Failure` or implement `IntoFailure`"
)]
pub trait StatefulHandler<State, Arguments>: Clone + Send + Sync + 'static {
    /// The tool's input.
    type In;
    /// The tool's output.
    type Out;
    /// The tool's error.
    type Error;
    /// The function's future; ready if the function is not async.
    type Future: Future<Output = Result<Self::Out, Self::Error>>;
    /// True if the function may block its thread, because it is not async.
    const BLOCKS: bool;

    /// Runs the tool.
    fn call(self, state: State, input: Self::In, context: Context) -> Self::Future;
}

/// Implements a trait for the functions with parameters of these types.
macro_rules! functions {
    ($trait:ident, ($($state:ident: $State:ident)?), $input:ident, $context:ident, $call:tt: $($types:ident),+) => {
        impl<F, K, R: Returned<K>, $($State,)? In> $trait<$($State,)? (K, $($types),+)> for F
        where
            F: Fn($($State,)? $($types),+) -> R + Clone + Send + Sync + 'static,
        {
            type In = In;
            type Out = R::Out;
            type Error = R::Error;
            type Future = R::Future;
            const BLOCKS: bool = R::BLOCKS;

            fn call(self, $($state: $State,)? $input: In, $context: Context) -> R::Future {
                self $call.into_future()
            }
        }
    };
}

functions!(Handler, (), input, _context, (input): In);
functions!(Handler, (), input, context, (input, context): In, Context);
functions!(StatefulHandler, (state: State), input, _context, (state, input): In);
functions!(StatefulHandler, (state: State), input, context, (state, input, context): In, Context);

/// A type that can be a tool's input.
///
/// Implemented for every type that can be deserialized and has a schema.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a tool's input",
    label = "the first parameter is the input, and `{Self}` cannot be one",
    note = "derive `serde::Deserialize` and `schemars::JsonSchema` for the type of the input; a tool \
            that needs its `Context` takes it as the second parameter"
)]
pub trait ToolInput: DeserializeOwned + JsonSchema + Send + 'static {}

#[diagnostic::do_not_recommend]
impl<T: DeserializeOwned + JsonSchema + Send + 'static> ToolInput for T {}

/// A type that can be a tool's output.
///
/// Implemented for every type that can be serialized and has a schema.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a tool's output",
    label = "the function returns `{Self}`, which is no output",
    note = "derive `serde::Serialize` and `schemars::JsonSchema` for the type of the output; lists, \
            maps, texts, numbers, `Content` and `()` are outputs too"
)]
pub trait ToolOutput: Serialize + JsonSchema + 'static {}

#[diagnostic::do_not_recommend]
impl<T: Serialize + JsonSchema + 'static> ToolOutput for T {}

/// An error that a tool can return in place of a [`Failure`].
///
/// Implement it for your own error type, to decide once what each error means for the model and
/// whether the call may be repeated. `?` then works as with any error type:
///
/// ```
/// # use lambda_tools_core as lambda_tools;
/// use std::time::Duration;
/// use lambda_tools::{Failure, IntoFailure, Tool};
/// # use schemars::JsonSchema;
/// # use serde::Deserialize;
///
/// enum ShopError {
///     SoldOut,
///     Busy(Duration),
///     Database(std::io::Error),
/// }
///
/// impl From<std::io::Error> for ShopError {
///     fn from(error: std::io::Error) -> Self {
///         Self::Database(error)
///     }
/// }
///
/// impl IntoFailure for ShopError {
///     fn into_failure(self) -> Failure {
///         match self {
///             Self::SoldOut => Failure::new("The article is sold out"),
///             Self::Busy(wait) => Failure::new("The shop is busy").retry_after(wait),
///             Self::Database(error) => Failure::from(error),
///         }
///     }
/// }
/// # /// Orders an article.
/// # #[derive(Deserialize, JsonSchema)]
/// # struct Order {}
///
/// async fn order(order: Order) -> Result<u64, ShopError> {
///     let stock = std::fs::read_to_string("stock")?;
///     if stock.is_empty() { Err(ShopError::SoldOut) } else { Ok(1) }
/// }
///
/// let tool = Tool::new("Shop.Order@1.0.0", order);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a tool's error",
    label = "neither `Failure` nor a type that implements `IntoFailure`",
    note = "return `Result<_, lambda_tools::Failure>`: `?` converts any error to a failure; or \
            implement `lambda_tools::IntoFailure` for your error"
)]
pub trait IntoFailure {
    /// Converts the error to the failure that the caller gets.
    fn into_failure(self) -> Failure;
}

impl IntoFailure for Failure {
    fn into_failure(self) -> Failure {
        self
    }
}
