//! Tools for AI agents: plain async Rust functions, deployed as one AWS Lambda function.
//!
//! Agents that speak MCP (Model Context Protocol) over Streamable HTTP can discover and call them,
//! and so can clients of OXP (Open eXecution Protocol) 1.0, Open Tool Calling 1.0 and OpenTool 1.0.
//!
//! ```no_run
//! use lambda_tools::prelude::*;
//! use serde::Deserialize;
//!
//! /// Adds two numbers together.
//! #[derive(Deserialize, JsonSchema)]
//! struct Add {
//!     /// The first number to add.
//!     a: f64,
//!     /// The second number to add.
//!     b: f64,
//! }
//!
//! async fn add(input: Add) -> Result<f64, Failure> {
//!     Ok(input.a + input.b)
//! }
//!
//! fn main() -> Result<(), lambda_tools::Error> {
//!     run(Toolkit::new([Tool::new("Calculator.Add@1.0.0", add)])?)
//! }
//! ```
//!
//! This program needs two dependencies: `lambda_tools`, and `serde` with its feature `derive`. Most
//! tools need six names, which are in the [`prelude`]: [`Tool`], [`Toolkit`], [`Context`],
//! [`Secret`], [`Failure`] and [`run`], or [`serve`] in a program with its own runtime.
//!
//! # Pages
//!
//! | I want to … | page |
//! | --- | --- |
//! | go from a Rust function to an agent | [`guide_tool`] |
//! | make tools from an OpenAPI document | [`guide_api`], [`from_openapi`] |
//! | write a tool, and test it | [`tools`], [`testing`] |
//! | connect a client, or call the tools in a browser | [`clients`] |
//! | give a tool a secret | [`secrets`] |
//! | decide who may call, and how often | [`callers`] |
//! | let people sign in | [`sign_in`] |
//! | let a tool act for a user at another service | [`users`] |
//! | run a repeated call once, or calls of minutes | [`calls`] |
//! | deploy to Lambda, or to a container platform | [`lambda`], [`containers`] |
//! | use AWS's AgentCore | [`agentcore`] |
//! | run a function in production, and know its costs and limits | [`production`], [`costs`] |
//! | find out why something fails | [`troubleshooting`] |
//! | look a setting or a permission up | [`environment`] |
//! | know what each protocol can express | [`protocols`] |
//! | know what is promised, and what was tried | [`security`] |
//! | change the library, or release it | [`architecture`], [`releasing`], [`first_deployment`] |
//!
//! # Cargo features
//!
//! None is enabled by default: a program that only serves tools needs none. A feature adds a method or a
//! setting, and changes nothing by itself; only the local server shows the page and the document that it
//! is compiled with.
//!
//! | feature | what it adds |
//! | --- | --- |
//! | `chrono` | the types of chrono 0.4 in inputs and outputs |
//! | `client` | the module `client`: clients for OXP, Open Tool Calling and OpenTool |
//! | `dynamodb` | calls, challenges and grants in DynamoDB tables (`TOOLS_IDEMPOTENCY=dynamodb`) |
//! | `explorer` | `Server::explorer`: the page at `GET /` on which people see and call the tools ([`clients`]) |
//! | `from-openapi` | the module `from_openapi`: tools from an OpenAPI document |
//! | `jiff` | the types of jiff 0.2 in inputs and outputs |
//! | `jwt` | JWTs as credentials (`TOOLS_AUTH=jwt`) |
//! | `oauth` | the module `oauth`: users authorize tools to act for them |
//! | `oidc` | access tokens of identity providers as credentials (`TOOLS_AUTH=oidc`); includes `jwt` |
//! | `openapi` | `Server::openapi`, and `Server::serve_openapi` for `GET /openapi.json`: the server as an OpenAPI document |
//! | `otlp` | spans, exported with OpenTelemetry's protocol |
//! | `parameter-store` | tools' secrets from Parameter Store (`TOOLS_SECRETS=parameter-store`) |
//! | `secrets-manager` | tools' secrets from AWS Secrets Manager (`TOOLS_SECRETS=secrets-manager`) |
//! | `sign-in` | sign-in for clients that no provider knows (`TOOLS_AUTH=sign-in`); includes `oauth` and `oidc` |
//! | `tasks` | `Server::tasks`: calls in the background, which MCP clients ask for later ([`calls`]) |
//! | `url` | `url::Url` 2 in inputs and outputs |
//! | `uuid` | `uuid::Uuid` 1 in inputs and outputs |

#![cfg_attr(docsrs, feature(doc_cfg))]

// A panic in a tool must not abort the process: that would end the other calls and lose the record
// of the tool's own call. Unless the manifest sets `panic`, cargo-lambda uses "abort" for release
// builds.
#[cfg(panic = "abort")]
compile_error!(
    "lambda_tools catches panics in tools, which requires unwinding: set panic = \"unwind\" under \
     [profile.release] (or the profile that you build with) in the Cargo.toml of your workspace. \
     Without it, `cargo lambda build` and `sam build` use \"abort\"."
);

mod arrival;
mod assemble;
mod call;
mod event;
mod hosts;
mod observe;
mod protocol;
mod serve;
mod server;
mod server_info;
pub mod testing;

// What the crates below have, under short paths.
use lambda_tools_accounts::{Challenge, PublicUrl, auth};
use lambda_tools_core::{clock, json, secret, text, tool, wire};

// The pages below `docs/`. Links between them are references, such as `[Settings][environment]`:
// here the definitions in `pages.md` come first and apply, elsewhere those at the end of each page.
// So do those in `pictures.md`, which contain the pictures: `tests/it/documents.rs` writes it.
// The page of `secrets` is part of that module's documentation.
// The example of `clients` needs a cargo feature.
macro_rules! pages {
    ($($module:ident $page:literal)*) => {$(
        #[doc = concat!(include_str!("pages.md"), include_str!(concat!("../docs/", $page, ".md")))]
        pub mod $module {}
    )*};
}
pages! {
    agentcore "agentcore"
    architecture "architecture"
    callers "callers"
    calls "calls"
    containers "containers"
    costs "costs"
    environment "environment"
    first_deployment "first-deployment"
    guide_api "guide-api"
    guide_tool "guide-tool"
    lambda "lambda"
    production "production"
    releasing "releasing"
    security "security"
    tools "tools"
    troubleshooting "troubleshooting"
}
#[doc = include_str!("pages.md")]
#[doc = include_str!("pictures.md")]
#[cfg_attr(any(not(doctest), feature = "client"), doc = include_str!("../docs/clients.md"))]
pub mod clients {}
#[doc = include_str!("pages.md")]
#[doc = concat!(include_str!("pictures.md"), include_str!("../docs/protocols.md"))]
pub mod protocols {}
#[doc = include_str!("pages.md")]
#[doc = concat!(include_str!("pictures.md"), include_str!("../docs/sign-in.md"))]
pub mod sign_in {}
#[doc = include_str!("pages.md")]
#[doc = concat!(include_str!("pictures.md"), include_str!("../docs/users.md"))]
pub mod users {}

#[cfg(feature = "client")]
pub mod client {
    //! Clients for OXP, Open Tool Calling and OpenTool servers.
    //!
    //! They require the Cargo feature `client` and are not compiled without it. All clients time out,
    //! limit the size of responses, follow no redirects, and never print their credentials.
    //!
    //! The page [`clients`](crate::clients) describes their limits and retries, and shows how to call the
    //! tools of MCP servers.
    //!
    //! ```no_run
    //! # async fn run() -> Result<(), lambda_tools::client::ClientError> {
    //! use lambda_tools::client::{ClientOptions, oxp::{CallRequest, OxpClient, CallOutcome}};
    //! use serde_json::json;
    //!
    //! let options = ClientOptions::default().api_key("my-api-key");
    //! let client = OxpClient::new("https://tools.example", options)?;
    //! let call = CallRequest::new("Calculator.Add").input(json!({"a": 10, "b": 5}));
    //! match client.call(&call).await?.outcome {
    //!     CallOutcome::Value(value) => println!("{value}"),
    //!     CallOutcome::ToolError(error) => println!("{}", error.message),
    //!     other => println!("{other:?}"),
    //! }
    //! # Ok(())
    //! # }
    //! ```

    #[doc(inline)]
    pub use lambda_tools_client::{
        AuthorizationChallenge, CallOutcome, CallReply, CallRequest, ClientError, ClientOptions,
        InvalidInput, JwtSigner, MissingRequirements, ServerError, ToolError, opentool, oxp,
    };
}

/// Tools for agents, made from an API's OpenAPI document.
///
/// An HTTP API that has such a document becomes tools without any code.
///
#[doc = concat!(include_str!("pages.md"), include_str!("../docs/from-openapi.md"))]
#[cfg(feature = "from-openapi")]
pub mod from_openapi {
    #[doc(inline)]
    pub use lambda_tools_openapi::{
        ApiTools, Note, OpenApi, OpenApiError, OpenApiOptions, Reduction, Report, UserProvider,
    };
}

pub mod idempotency {
    //! One call, one effect: `call_id` as an idempotency key.
    //!
    //! OXP 1.0, Call Tool: `call_id` identifies a repeated call. The page [`calls`](crate::calls) says who
    //! sends an id, and what happens to repeated calls.

    #[cfg(feature = "dynamodb")]
    pub use lambda_tools_records::idempotency::DynamoDb;
    pub use lambda_tools_records::idempotency::Idempotency;
    pub(crate) use lambda_tools_records::idempotency::*;
}

#[cfg(feature = "oauth")]
pub mod oauth {
    //! Tools that act for a user: authorization with OAuth 2.0.
    //!
    //! A call to a tool that [requires](crate::Tool::authorization) a user's token returns a challenge
    //! if the token is missing: the user follows its URL once and allows what the tool needs, and then
    //! the same call succeeds on every instance of the function. References: OXP 1.0, Authorization
    //! Challenges; RFC 6749, RFC 7636, RFC 9700. The page [`users`](crate::users) shows an example, and how
    //! keys are rotated.
    //!
    //! Three things are required: a [`Provider`] with its client id, its client secret in the server's
    //! [store](crate::secrets), and in the same store a key of at least 32 bytes, with which all
    //! challenges and grants are encrypted (AES-256-GCM). Read access to their records alone reveals no
    //! token.
    //!
    //! Following a challenge's URL does not start anything by itself: a page names the caller and the
    //! requested scopes, and its button leads to the provider. Neither a link preview nor another
    //! site's form can press it.
    //!
    //! Everything that passes through the browser is bound to it: `state` is signed, works only once,
    //! expires after a few minutes, and is valid only with the cookie that the challenge's page has
    //! set; the PKCE verifier is derived from the same cookie. A challenge started in one browser
    //! cannot be finished in another.
    //!
    //! A challenge's id, and therefore `state`, contains a hash of the user's id: anyone who guesses a
    //! user's id can confirm the guess, as with every hash of a name.
    //!
    //! A challenge belongs to the call's user and its caller: users of two callers are different users,
    //! even if their ids are equal. Give its URL to that user only: anyone who follows it and agrees
    //! lets tools use their account at the provider in that user's calls.

    pub(crate) use lambda_tools_accounts::oauth::*;
    pub use lambda_tools_accounts::oauth::{OAuth, Provider};
}

pub mod quotas {
    //! Quotas: limits on the number of calls that run in a minute or a day. The page
    //! [`callers`](crate::callers) describes them.

    pub use lambda_tools_records::quotas::Quota;
    pub(crate) use lambda_tools_records::quotas::*;
}

pub mod secrets {
    //! Secrets: values that tools may use and nothing may reveal, and the stores that hold them.
    //!
    #![doc = include_str!("pages.md")]
    #![doc = include_str!("../docs/secrets.md")]

    #[cfg(feature = "parameter-store")]
    pub use lambda_tools_accounts::secrets::ParameterStore;
    #[cfg(feature = "secrets-manager")]
    pub use lambda_tools_accounts::secrets::SecretsManager;
    pub(crate) use lambda_tools_accounts::secrets::*;
    pub use lambda_tools_accounts::secrets::{
        ReadFuture, ReadResult, Secret, SecretStore, Secrets,
    };
}

pub mod store {
    //! A store of versioned records, for everything that outlives a call.
    //!
    //! The records of calls, challenges and grants must be consistent across all instances of a
    //! function. So every write is conditional: it names the version that it replaces, and of two
    //! concurrent writes only one succeeds. The layers above give records their meaning:
    //! [`idempotency`](crate::idempotency), [`quotas`](crate::quotas), and `oauth` with the Cargo
    //! feature of that name.

    #[cfg(feature = "dynamodb")]
    pub use lambda_tools_records::store::DynamoDb;
    pub(crate) use lambda_tools_records::store::hash_of_texts;
    pub use lambda_tools_records::store::{
        Count, Field, Over, PutOutcome, Record, Store, StoreError, StoreFuture, Write,
    };
}

/// The error of [`serve`], such as a port in use, an invalid definition or a platform that does not
/// respond.
pub type Error = Box<dyn std::error::Error + Send + Sync>;

/// The names that most programs need: `use lambda_tools::prelude::*;`.
///
/// `JsonSchema` is both the trait and its derive macro; the macro also needs the name `schemars`.
pub mod prelude {
    pub use schemars::{self, JsonSchema};

    pub use crate::{Content, Context, Failure, Secret, Server, Tool, Toolkit, run, serve};
}

pub use arrival::{AgentCoreUser, EventKind};
#[cfg(feature = "jwt")]
pub use lambda_tools_accounts::Jwt;
#[cfg(feature = "oauth")]
pub use lambda_tools_accounts::OAuth;
#[cfg(feature = "oidc")]
pub use lambda_tools_accounts::Oidc;
#[cfg(feature = "sign-in")]
pub use lambda_tools_accounts::SignIn;
pub use lambda_tools_accounts::{ApiKeys, Auth, Gateway};
#[doc(inline)]
pub use lambda_tools_core::{
    AccessToken, AuthorizationRequirement, BuildError, Caller, Content, Context, DEFAULT_TIMEOUT,
    Failure, Handler, IdError, IntoFailure, Message, OAuth2Requirement, Prompt, Requirements,
    Resource, Secret, SecretRequirement, StatefulHandler, Tool, ToolDefinition, ToolId, ToolInput,
    ToolOutput, Toolkit,
};
pub use lambda_tools_records::StoreError;
pub use protocol::Protocol;
pub use serve::{run, serve};
pub use server::Server;
pub use server_info::ServerInfo;

// The crates whose types are part of this crate's interface.
pub use {axum, http, schemars, serde_json};

/// Compiles the code in README.md.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
