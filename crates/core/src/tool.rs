//! A tool: its id, schemas and requirements, and a boxed function that runs it.
//!
//! Creating a tool is cheap: it only stores functions. Schemas, validators and descriptions are
//! built on first use.

pub mod agentcore;
pub mod caller;
pub mod content;
pub mod context;
pub mod definition;
pub mod failure;
pub(crate) mod handler;
pub mod id;
pub mod output;
pub mod parts;
pub mod progress;
pub mod question;
pub mod reason;
pub mod repeats;
pub mod requirement;
pub mod resource;
pub mod toolkit;

use std::{borrow::Cow, sync::Arc, time::Duration};

pub use lambda_tools_schema as schema;
use serde_json::Value;

use crate::{Context, Failure, text::separate_scopes, tool::repeats::RepeatPolicy};
use caller::CallerRule;
use handler::{Handler, IntoFailure, StatefulHandler, ToolInput, ToolOutput};
use parts::{TaskSupport, ToolParts};
use requirement::{AuthorizationRequirement, OAuth2Requirement, SecretRequirement};
use schema::{ParameterErrors, Schema};

/// The time limit of a tool that does not [set its own](Tool::timeout).
///
/// API Gateway gives up after 29 seconds (REST APIs) or 30 (HTTP APIs); our own response, which
/// says whether to retry, must be sent before that.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(28);

/// One version of one tool.
///
/// ```
/// # use lambda_tools_core as lambda_tools;
/// use lambda_tools::{Failure, Tool};
/// use schemars::JsonSchema;
/// use serde::Deserialize;
///
/// /// Repeats a word.
/// #[derive(Deserialize, JsonSchema)]
/// struct Repeat {
///     /// The word to repeat.
///     word: String,
///     /// The number of repetitions; 1 by default.
///     times: Option<u8>,
/// }
///
/// async fn repeat(input: Repeat) -> Result<String, Failure> {
///     Ok(input.word.repeat(input.times.unwrap_or(1).into()))
/// }
///
/// let tool = Tool::new("Words.Repeat@1.0.0", repeat);
/// ```
///
/// The doc comment of the input type is the tool's description; those of its fields describe the
/// parameters. Fields that are `Option` or `#[serde(default)]` are optional. Unknown parameters are
/// rejected, at every depth.
#[must_use]
pub struct Tool(Arc<ToolParts>);

impl Tool {
    fn parts(&mut self) -> &mut ToolParts {
        Arc::get_mut(&mut self.0).expect("only the tools of a toolkit are shared")
    }

    /// Creates a tool whose schemas are derived from its function's types.
    ///
    /// `id` is `Toolkit.Tool@x.y.z`. [`Toolkit::new`](crate::Toolkit::new) reports mistakes in the
    /// id and in the types, all at once.
    ///
    /// A function that is not async may block: each call runs on a thread of its own, one of 64
    /// at once. At its time limit the call ends like any other, but nothing can stop its thread, which
    /// runs on until the function returns.
    ///
    /// ```
    /// # use lambda_tools_core as lambda_tools;
    /// use lambda_tools::{Failure, Tool};
    /// # use schemars::JsonSchema;
    /// # use serde::Deserialize;
    ///
    /// /// Reads a note.
    /// #[derive(Deserialize, JsonSchema)]
    /// struct Note {
    ///     /// The number of the note.
    ///     number: u32,
    /// }
    ///
    /// fn note(input: Note) -> Result<String, Failure> {
    ///     Ok(std::fs::read_to_string(format!("notes/{}", input.number))?)
    /// }
    ///
    /// let tool = Tool::new("Notes.Read@1.0.0", note);
    /// ```
    #[track_caller]
    pub fn new<H, A: 'static>(id: impl Into<Cow<'static, str>>, handler: H) -> Self
    where
        H: Handler<A>,
        H::In: ToolInput,
        H::Out: ToolOutput,
        H::Error: IntoFailure,
        H::Future: Send + 'static,
    {
        let input = Schema::of_type(schema::of_input::<H::In>);
        let output = Schema::of_type(schema::of_output::<H::Out>);
        let mut parts = ToolParts::new(id.into(), input, output, handler);
        parts.returns_content = content::is_content::<H::Out>();
        Self(Arc::new(parts))
    }

    /// Creates a tool with a state that it shares with others, such as a client, a pool of
    /// connections or settings. Each call gets a clone, so put what is costly to clone into an
    /// [`Arc`].
    ///
    /// ```
    /// # use lambda_tools_core as lambda_tools;
    /// use std::{collections::HashMap, sync::Arc};
    /// use lambda_tools::{Failure, Tool, Toolkit};
    /// use schemars::JsonSchema;
    /// use serde::Deserialize;
    ///
    /// #[derive(Clone)]
    /// struct Shop {
    ///     prices: Arc<HashMap<String, f64>>,
    /// }
    ///
    /// /// Returns the price of an article.
    /// #[derive(Deserialize, JsonSchema)]
    /// struct Price {
    ///     /// The article's number.
    ///     article: String,
    /// }
    ///
    /// async fn price(shop: Shop, input: Price) -> Result<f64, Failure> {
    ///     let price = shop.prices.get(&input.article).copied();
    ///     price.ok_or_else(|| Failure::new("There is no such article"))
    /// }
    ///
    /// let shop = Shop { prices: Arc::default() };
    /// let toolkit = Toolkit::new([Tool::with_state("Shop.Price@1.0.0", &shop, price)]);
    /// ```
    #[track_caller]
    pub fn with_state<S, H, A: 'static>(
        id: impl Into<Cow<'static, str>>,
        state: &S,
        handler: H,
    ) -> Self
    where
        S: Clone + Send + Sync + 'static,
        H: StatefulHandler<S, A>,
        H::In: ToolInput,
        H::Out: ToolOutput,
        H::Error: IntoFailure,
        H::Future: Send + 'static,
    {
        let state = state.clone();
        let handler = move |input: H::In, context: Context| {
            handler.clone().call(state.clone(), input, context)
        };
        let mut tool = Self::new(id, handler);
        tool.parts().blocks = H::BLOCKS;
        tool
    }

    /// Creates a tool whose schemas are known only at run time: JSON in, JSON out.
    ///
    /// `input` is the JSON Schema of an object, `output` that of the result (`null` for none).
    /// Without `$schema`, they are read as draft 7, or as draft 2020-12 if they use its keywords.
    /// Their objects are not closed: unknown properties are allowed unless the schema forbids them.
    ///
    /// ```
    /// # use lambda_tools_core as lambda_tools;
    /// use lambda_tools::Tool;
    /// use serde_json::{Value, json};
    ///
    /// let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
    /// let next = |input: Value| async move { Ok(json!(input["n"].as_i64().map(|n| n + 1))) };
    /// let tool = Tool::dynamic("Numbers.Next@1.0.0", "Adds one.", schema, json!({}), next);
    /// ```
    #[track_caller]
    pub fn dynamic<H, A: 'static>(
        id: impl Into<Cow<'static, str>>,
        description: impl Into<String>,
        input: Value,
        output: Value,
        handler: H,
    ) -> Self
    where
        H: Handler<A, In = Value, Out = Value, Error = Failure>,
        H::Future: Send + 'static,
    {
        let (input, output) = (Schema::from_value(input), Schema::from_value(output));
        let parts = ToolParts::new(id.into(), input, output, handler);
        Self(Arc::new(parts)).description(description)
    }

    /// Sets the description, in place of the input type's doc comment.
    pub fn description(mut self, text: impl Into<String>) -> Self {
        self.parts().description = Some(text.into());
        self
    }

    /// Adds a check of what the input's schema does not say, which may also change the input.
    pub fn checked(
        mut self,
        check: impl Fn(Value) -> Result<Value, ParameterErrors> + Send + Sync + 'static,
    ) -> Self {
        self.parts().check = Some(Box::new(check));
        self
    }

    /// Declares that `format` in the input's schema is an annotation, as in OpenAPI, and no rule.
    pub fn formats_are_annotations(mut self) -> Self {
        self.parts().input.annotate_formats();
        self
    }

    /// Declares that the tool's output is the JSON of [`Content`](crate::Content).
    pub fn returning_content(mut self) -> Self {
        self.parts().returns_content = true;
        self
    }

    /// Sets the name that models see, in place of `Toolkit_Tool`: at most 64 letters, digits,
    /// underscores and dashes.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.parts().name = Some(name.into());
        self
    }

    /// Sets the title that people see, in clients that show one.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.parts().title = Some(title.into());
        self
    }

    /// Tells clients whether the tool only reads; if so, they may run it without asking the user.
    /// MCP calls this `readOnlyHint`; without it, clients assume `false`.
    pub fn read_only(mut self, is_read_only: bool) -> Self {
        self.parts().hints.is_read_only = Some(is_read_only);
        self
    }

    /// Tells clients whether the tool may delete or overwrite something. MCP calls this
    /// `destructiveHint`; without it, clients assume `true` for tools that are not read-only.
    pub fn destructive(mut self, is_destructive: bool) -> Self {
        self.parts().hints.is_destructive = Some(is_destructive);
        self
    }

    /// Tells clients whether the tool interacts with an open set of external systems, such as the
    /// web. MCP calls this `openWorldHint`; without it, clients assume `true`.
    pub fn open_world(mut self, is_open_world: bool) -> Self {
        self.parts().hints.is_open_world = Some(is_open_world);
        self
    }

    /// Declares a secret that the tool reads with [`Context::secret`].
    pub fn secret(mut self, id: impl Into<String>) -> Self {
        let id = id.into();
        let needs = &mut self.parts().requirements.secrets;
        needs.push(SecretRequirement { id });
        self
    }

    /// Declares a provider and the OAuth 2.0 scopes that the user must grant. The tool reads the
    /// provider's token with [`Context::token`].
    ///
    /// Declare [`user_id`](Self::user_id), too: without a user, a repeated call is identified by the
    /// token that it carries, and a refreshed token makes it a new call.
    pub fn authorization<S: Into<String>>(
        mut self,
        provider: impl Into<String>,
        scopes: impl IntoIterator<Item = S>,
    ) -> Self {
        let scopes = scopes.into_iter().map(Into::into).collect();
        let needs = &mut self.parts().requirements.authorization;
        needs.push(AuthorizationRequirement {
            id: provider.into(),
            oauth2: OAuth2Requirement { scopes },
            token_url: None,
        });
        self
    }

    /// Declares where the last declared provider issues its tokens: the tool gets those of no other one
    /// with the same id.
    pub fn token_url(mut self, url: &str) -> Self {
        if let Some(last) = self.parts().requirements.authorization.last_mut() {
            last.token_url = Some(url.to_owned());
        }
        self
    }

    /// Declares that the tool must know which user it acts for ([`Context::user_id`]).
    pub fn user_id(mut self) -> Self {
        self.parts().requirements.user_id = true;
        self
    }

    /// Declares a scope that the caller's own token must have, such as `mail.read`: calls with a
    /// JWT or an access token without it are rejected. Callers without a token, such as those with
    /// API keys, have no scopes and are not restricted ([`Caller::scopes`](crate::Caller::scopes)).
    /// A text with spaces names several scopes.
    ///
    /// Not to be confused with [`Tool::authorization`], which is about the user's account at another
    /// provider.
    pub fn scope(mut self, scope: impl Into<String>) -> Self {
        self.parts().scopes.extend(separate_scopes(&scope.into()));
        self
    }

    /// Lets only some callers call the tool: those to whom one of the rules applies. A rule is
    /// `group:NAME` for a user's [groups](crate::AccessToken::groups), `user:ID`, or
    /// `caller:SECRET_ID` for the holder of an API key or a JWT. Other callers are rejected before
    /// their input is looked at. Rules that are added later let more callers in; the setting
    /// `TOOLS_ALLOW` only keeps callers out.
    ///
    /// [`Context::caller`] tells who calls a tool that decides for itself.
    pub fn allow<S: AsRef<str>>(mut self, rules: impl IntoIterator<Item = S>) -> Self {
        let rules = rules.into_iter().map(|it| CallerRule::parse(it.as_ref()));
        self.parts().allowed.get_or_insert_default().extend(rules);
        self
    }

    /// Sets the time limit for a call; one that exceeds it ends with a failure that may be retried.
    /// The default is [`DEFAULT_TIMEOUT`]. On Lambda the function's own deadline applies as well.
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.parts().timeout = Some(limit);
        self
    }

    /// Declares that a call may take longer than its client waits: up to 15 minutes, unless the tool
    /// has [its own limit](Self::timeout).
    ///
    /// The call runs in an invocation of its own, or in the process of the local server. An MCP client
    /// that supports tasks gets a task after two seconds, and asks for its outcome later. Other clients
    /// wait for up to 28 seconds. Then they get a failure that says that the work goes on, and the same
    /// `call_id` gets the outcome later.
    ///
    /// Requires the Cargo feature `tasks`, and a store of calls that all instances share; without
    /// them, this changes nothing.
    pub fn background(mut self) -> Self {
        self.parts().tasks = TaskSupport::Optional;
        self
    }

    /// Declares that the tool works in the [background](Self::background), and that its calls always
    /// take longer than clients wait: clients that do not support tasks get an error, and nothing runs.
    pub fn requires_task(mut self) -> Self {
        self.parts().tasks = TaskSupport::Required;
        self
    }

    /// Declares that equal calls without an id are one call, if the second one comes within this time
    /// after the first one has ended: at most 120 seconds. No MCP client sends ids by itself, but some
    /// repeat a call whose response was lost. Calls are equal if caller, user, version and input are,
    /// and the secrets and tokens that they carry.
    ///
    /// The second call gets the first one's outcome, and its model is told that nothing was done
    /// again; it waits if the first one is still running. A failure that may be retried is not kept.
    /// Not for tools that are meant to be repeated, such as a counter.
    pub fn once_within(mut self, time: Duration) -> Self {
        self.parts().once_within = Some(time);
        self
    }

    /// Declares that running the tool again changes nothing, as with reading or computing. Its
    /// calls are not recorded, which costs less.
    pub fn idempotent(mut self) -> Self {
        self.parts().policy = RepeatPolicy::Idempotent;
        self
    }

    /// Declares that running the tool twice is worse than not running it, as with a payment or a
    /// message. An interrupted call with a `call_id` is not run again until its record
    /// expires (`Idempotency::expire_after`).
    pub fn run_at_most_once(mut self) -> Self {
        self.parts().policy = RepeatPolicy::AtMostOnce;
        self
    }
}
