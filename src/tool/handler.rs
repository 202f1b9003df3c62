//! The functions that can be tools: `async fn(In)` and `async fn(In, Context)`.
//!
//! The signature is the source of truth: the schemas come from its types. A sealed trait with two
//! implementations instead of a macro keeps compiler errors ordinary and leaves the function
//! callable from a unit test.

use std::future::Future;

use crate::{Context, Failure};

mod sealed {
    pub trait Sealed<Arguments> {}
}

/// An async function that can be a tool.
///
/// Implemented for functions and closures that take the input, or the input and a [`Context`],
/// and return `Result<Output, Failure>`. It cannot be implemented for other types.
#[diagnostic::on_unimplemented(
    message = "this function cannot be a tool",
    label = "not an `async fn(Input)` or `async fn(Input, Context)` that returns `Result<Output, Failure>`",
    note = "the parameters must be owned, the error must be `lambda_tools::Failure`, and the \
            future must be `Send` (no `Rc`, no `RefCell` borrow, no lock guard is held across an \
            `.await`); a closure must be `Clone` and name its parameters' types"
)]
pub trait Handler<Arguments>: sealed::Sealed<Arguments> + Clone + Send + Sync + 'static {
    /// The tool's input.
    type In;
    /// The tool's output.
    type Out;

    /// Runs the tool.
    fn call(
        self,
        input: Self::In,
        context: Context,
    ) -> impl Future<Output = Result<Self::Out, Failure>> + Send;
}

impl<F, Fut, In, Out> sealed::Sealed<(In,)> for F
where
    F: Fn(In) -> Fut,
    Fut: Future<Output = Result<Out, Failure>>,
{
}

impl<F, Fut, In, Out> Handler<(In,)> for F
where
    F: Fn(In) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = Result<Out, Failure>> + Send,
{
    type In = In;
    type Out = Out;

    fn call(
        self,
        input: In,
        _context: Context,
    ) -> impl Future<Output = Result<Out, Failure>> + Send {
        self(input)
    }
}

impl<F, Fut, In, Out> sealed::Sealed<(In, Context)> for F
where
    F: Fn(In, Context) -> Fut,
    Fut: Future<Output = Result<Out, Failure>>,
{
}

impl<F, Fut, In, Out> Handler<(In, Context)> for F
where
    F: Fn(In, Context) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = Result<Out, Failure>> + Send,
{
    type In = In;
    type Out = Out;

    fn call(
        self,
        input: In,
        context: Context,
    ) -> impl Future<Output = Result<Out, Failure>> + Send {
        self(input, context)
    }
}
