//! A server: a toolkit and its configuration.
//!
//! An optional builder between [`Toolkit`] and [`serve`](crate::serve): where the defaults are
//! enough, the toolkit can be passed to `serve` directly.

use std::{sync::Arc, time::Duration};

use axum::Router;
use http::HeaderName;

use crate::{
    AgentCoreUser, Auth, EventKind, ServerInfo, Toolkit,
    arrival::LARGEST_PAYLOAD,
    auth::sign_in::SignIn,
    call::{background::HandOver, watch::Watch},
    idempotency::Idempotency,
    protocol::Protocol,
    quotas::Quota,
    secrets::Secrets,
};

/// The default size limit of a request body, in bytes: far more than a model writes, far less than
/// Lambda accepts.
const DEFAULT_MAX_REQUEST_SIZE: usize = 1 << 20;

/// The time after which a client gets a task: a call that takes less needs no second request.
const TASK_AFTER: Duration = Duration::from_secs(2);

/// A toolkit and its configuration.
///
/// ```no_run
/// # use lambda_tools::{Server, Toolkit, serve};
/// # async fn run(toolkit: Toolkit) -> Result<(), lambda_tools::Error> {
/// use axum::routing::get;
///
/// let server = Server::new(toolkit)
///     .base_path("/agents")
///     .map_router(|router| router.route("/about", get(|| async { "About our tools." })));
/// serve(server).await
/// # }
/// ```
#[must_use]
pub struct Server {
    pub(crate) toolkit: Arc<Toolkit>,
    pub(crate) base_path: Option<String>,
    pub(crate) public_url: Option<String>,
    pub(crate) auth: Option<Auth>,
    pub(crate) secrets: Option<Secrets>,
    pub(crate) idempotency: Option<Idempotency>,
    pub(crate) quotas: Vec<Quota>,
    #[cfg(feature = "oauth")]
    pub(crate) oauth: Option<crate::OAuth>,
    pub(crate) protocols: Vec<Protocol>,
    pub(crate) info: ServerInfo,
    /// The namespace of the metrics.
    pub(crate) metrics: Option<String>,
    pub(crate) shows_calls: bool,
    pub(crate) watch: Watch,
    pub(crate) max_request_size: usize,
    pub(crate) allowed_origins: Option<Vec<String>>,
    pub(crate) readers: Option<Vec<String>>,
    pub(crate) events: Option<Vec<EventKind>>,
    pub(crate) streaming: Option<Vec<EventKind>>,
    pub(crate) agentcore_user: Option<AgentCoreUser>,
    pub(crate) lists_callable: bool,
    /// The ids of secrets, and the headers in which calls bring them.
    pub(crate) secret_headers: Vec<(String, HeaderName)>,
    pub(crate) task_after: Duration,
    pub(crate) explorer: Option<bool>,
    pub(crate) openapi: Option<bool>,
    pub(crate) tasks: Option<bool>,
    /// What takes the calls that outlast their requests, if any may.
    pub(crate) worker: Option<HandOver>,
    pub(crate) is_healthy: Option<Box<dyn Fn() -> bool + Send + Sync>>,
    pub(crate) router_changes: Vec<Box<dyn FnOnce(Router) -> Router + Send>>,
}

impl Server {
    /// Creates a server with the default configuration.
    pub fn new(toolkit: Toolkit) -> Self {
        Self {
            toolkit: Arc::new(toolkit),
            base_path: None,
            public_url: None,
            auth: None,
            secrets: None,
            idempotency: None,
            quotas: Vec::new(),
            #[cfg(feature = "oauth")]
            oauth: None,
            protocols: Protocol::ALL.to_vec(),
            info: ServerInfo::default(),
            metrics: None,
            shows_calls: false,
            watch: Watch::Off,
            max_request_size: DEFAULT_MAX_REQUEST_SIZE,
            allowed_origins: None,
            readers: None,
            events: None,
            streaming: None,
            agentcore_user: None,
            lists_callable: false,
            secret_headers: Vec::new(),
            task_after: TASK_AFTER,
            explorer: None,
            openapi: None,
            tasks: None,
            worker: None,
            is_healthy: None,
            router_changes: Vec::new(),
        }
    }

    /// Serves all routes under this path as well: with `/agents`, tools can be called at
    /// `/agents/tools/call`. Use it for custom domains whose base path mapping remains in the path.
    /// The names of API Gateway stages need no base path; they are stripped automatically.
    pub fn base_path(mut self, path: impl Into<String>) -> Self {
        self.base_path = Some(path.into());
        self
    }

    /// Sets the URL at which clients and browsers reach the server, such as
    /// `https://tools.example/agents`: access tokens are issued for it, challenges and redirects begin
    /// with it, and its web pages may send requests. By default it is the setting `TOOLS_PUBLIC_URL`,
    /// the domain in the event (load balancers send none), or the address of a local server. A
    /// request's `Host` header is never used.
    ///
    /// Set it if the domain is a wildcard, such as `*.example.com`: the event names the subdomain
    /// that the client chose, so that tokens for all subdomains would be accepted.
    pub fn public_url(mut self, url: impl Into<String>) -> Self {
        self.public_url = Some(url.into());
        self
    }

    /// Sets who may call: [`Auth`], or one kind of credentials. By default the environment decides
    /// (see [`serve`](crate::serve)).
    pub fn auth(mut self, auth: impl Into<Auth>) -> Self {
        self.auth = Some(auth.into());
        self
    }

    /// Sets the source of secrets that calls do not bring. By default the environment decides (see
    /// [`serve`](crate::serve)), and [`testing`](crate::testing) has no store.
    pub fn secrets(mut self, secrets: Secrets) -> Self {
        self.secrets = Some(secrets);
        self
    }

    /// Sets where calls are recorded, so that a repeated call has no second effect. By default the
    /// environment decides (see [`serve`](crate::serve)), and [`testing`](crate::testing) records
    /// nothing.
    pub fn idempotency(mut self, idempotency: Idempotency) -> Self {
        self.idempotency = Some(idempotency);
        self
    }

    /// Adds a limit on the number of calls that run: see [`quotas`](crate::quotas). Without any, the
    /// environment decides (see [`serve`](crate::serve)).
    pub fn quota(mut self, quota: Quota) -> Self {
        self.quotas.push(quota);
        self
    }

    /// Sets the providers at which users authorize tools to act for them. By default the
    /// environment decides (see [`serve`](crate::serve)), and [`testing`](crate::testing) has no
    /// providers.
    #[cfg(feature = "oauth")]
    pub fn oauth(mut self, oauth: crate::OAuth) -> Self {
        self.oauth = Some(oauth);
        self
    }

    /// Serves only these protocols. The default is [all](Protocol::ALL).
    ///
    /// ```no_run
    /// # use lambda_tools::{Protocol, Server, Toolkit};
    /// # fn server(toolkit: Toolkit) -> Server {
    /// Server::new(toolkit).protocols([Protocol::Oxp])
    /// # }
    /// ```
    pub fn protocols(mut self, protocols: impl IntoIterator<Item = Protocol>) -> Self {
        let chosen: Vec<_> = protocols.into_iter().collect();
        // In the order of `Protocol::ALL`, without duplicates.
        let all = Protocol::ALL.iter().copied();
        self.protocols = all.filter(|protocol| chosen.contains(protocol)).collect();
        self
    }

    /// Describes the server, for MCP's `serverInfo` and `instructions`, for `info` in OpenTool's
    /// `/opentool/load`, for `/opentool/version`, and for the pages on which users let tools use
    /// their accounts. By default, the title is `Tools` and the version `1.0.0`.
    pub fn info(mut self, info: ServerInfo) -> Self {
        self.info = info;
        self
    }

    /// Sets the size limit of a request body, in bytes: 1 MiB by default, 6 MB at most (Lambda's
    /// limit). A larger body is rejected with a 400, as is a body with more than one value for
    /// every 20 bytes of the limit (52,428 for 1 MiB), because a value of two bytes can take
    /// hundreds in memory. MCP responds to a body that is too large with a 413.
    pub fn max_request_size(mut self, bytes: usize) -> Self {
        self.max_request_size = bytes.min(LARGEST_PAYLOAD);
        self
    }

    /// Sets the origins, such as `https://app.example`, of the web pages that may send requests; `*`
    /// allows all. Pages of the domain in the event, of the public URL and of the user's own machine
    /// always may, and so may programs, which send no origin. These pages may also read the responses.
    /// By default the environment decides (see [`serve`](crate::serve)). The local server has its own
    /// check.
    pub fn allowed_origins<O: Into<String>>(
        mut self,
        origins: impl IntoIterator<Item = O>,
    ) -> Self {
        self.allowed_origins = Some(origins.into_iter().map(Into::into).collect());
        self
    }

    /// Sets the kinds of events that the function accepts on Lambda; an event of another kind fails the
    /// invocation. By default the environment decides (see [`serve`](crate::serve)); without a setting,
    /// and in [`testing`](crate::testing), these are [`EventKind::DEFAULT`].
    pub fn events(mut self, kinds: impl IntoIterator<Item = EventKind>) -> Self {
        self.events = Some(kinds.into_iter().collect());
        self
    }

    /// Sets the kinds of events whose responses are streams: [`EventKind::FunctionUrl`] and
    /// [`EventKind::RestApi`]. Then MCP clients see the [progress](crate::Context::progress) of a call
    /// while it runs ([`calls`](crate::calls)).
    ///
    /// No event says whether its source streams, and with a wrong setting no response can be read: set
    /// it if, and only if, the function URL has the invoke mode `RESPONSE_STREAM`, or the REST API
    /// the response transfer mode `STREAM`. By default the environment decides (see
    /// [`serve`](crate::serve)); without a setting, responses are whole. The local server always
    /// streams.
    pub fn streaming(mut self, kinds: impl IntoIterator<Item = EventKind>) -> Self {
        self.streaming = Some(kinds.into_iter().collect());
        self
    }

    /// Sets the header in which an `AgentCore` Gateway passes on the user of a call
    /// ([`agentcore`](crate::agentcore)). Without it, such calls have no user.
    pub fn agentcore_user(mut self, user: AgentCoreUser) -> Self {
        self.agentcore_user = Some(user);
        self
    }

    /// Shows each caller only the tools that it may call: those that its token has the
    /// [scopes](crate::Tool::scope) for, and that [rules](crate::Tool::allow) do not keep it from. By
    /// default the environment decides (see [`serve`](crate::serve)); without a setting, lists show all
    /// tools, because clients ask their user for a missing scope only when they call a tool.
    pub fn list_only_callable_tools(mut self) -> Self {
        self.lists_callable = true;
        self
    }

    /// Takes the value of a secret from a header of each call's request, in all protocols, so that each
    /// customer can send a key of its own; the store is not asked for it. In OXP, `context.secrets` may
    /// have it instead. Without any, the environment decides (see [`serve`](crate::serve)).
    pub fn secret_header(mut self, id: impl Into<String>, header: HeaderName) -> Self {
        self.secret_headers.push((id.into(), header));
        self
    }

    /// Sets the time after which an MCP client that supports tasks gets a task instead of the outcome
    /// of a tool in the [background](crate::Tool::background): 2 seconds by default.
    pub fn task_after(mut self, time: Duration) -> Self {
        self.task_after = time;
        self
    }

    /// Serves the [explorer](crate::clients) at `GET /`, or does not: a page on which people see the
    /// tools and call them, with the credentials that the server requires. By default the
    /// environment decides (see [`serve`](crate::serve)); without a setting, only the local server
    /// has it. The program's own routes at `/` and `/explorer.json` replace it.
    #[cfg(feature = "explorer")]
    pub fn explorer(mut self, is_served: bool) -> Self {
        self.explorer = Some(is_served);
        self
    }

    /// Serves an `OpenAPI` document of the server at `GET /openapi.json`, or does not
    /// ([`protocols`](crate::protocols)). By default the environment decides (see
    /// [`serve`](crate::serve)); without a setting, only the local server has it.
    #[cfg(feature = "openapi")]
    pub fn serve_openapi(mut self, is_served: bool) -> Self {
        self.openapi = Some(is_served);
        self
    }

    /// Lets calls of tools in the [background](crate::Tool::background) outlast their requests, or does
    /// not ([`calls`](crate::calls)). By default the environment decides (see
    /// [`serve`](crate::serve)); without a setting, every call runs in its request.
    #[cfg(feature = "tasks")]
    pub fn tasks(mut self, are_on: bool) -> Self {
        self.tasks = Some(are_on);
        self
    }

    /// Sets a health check. While it returns `false`, `/health` responds with a 503 and calls are
    /// rejected (in OXP, with a 400). OXP 1.0, `GET /health`.
    pub fn healthy_when(mut self, is_healthy: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        self.is_healthy = Some(Box::new(is_healthy));
        self
    }

    /// Changes the router, for example to add layers (CORS, compression, limits) or your own
    /// routes. Of [direct calls](EventKind::Direct), only messages of MCP pass through it.
    pub fn map_router(mut self, change: impl FnOnce(Router) -> Router + Send + 'static) -> Self {
        self.router_changes.push(Box::new(change));
        self
    }

    /// Returns the server as an `OpenAPI` 3.1 document, like `GET /openapi.json`, with the title
    /// and the credentials that were set here. Credentials that the environment chooses are not in
    /// it.
    ///
    /// ```
    /// # use lambda_tools::{ApiKeys, Server, Toolkit};
    /// let server = Server::new(Toolkit::new([])?).auth(ApiKeys::with_ids(["KEY"]));
    /// let schemes = &server.openapi()["components"]["securitySchemes"];
    /// assert_eq!(schemes["apiKey"]["name"], "OXP-API-Key");
    /// # Ok::<(), lambda_tools::BuildError>(())
    /// ```
    #[cfg(feature = "openapi")]
    #[must_use]
    pub fn openapi(&self) -> serde_json::Value {
        let open = Auth::none();
        let auth = self.auth.as_ref().unwrap_or(&open);
        crate::protocol::openapi(&self.info, &self.toolkit, auth)
    }

    /// Returns the URLs or the ids of the identity providers at which users sign in.
    pub(crate) fn issuers(&self) -> Vec<String> {
        let urls = self.auth.iter().flat_map(Auth::issuer_urls);
        let sign_in = self.auth.iter().filter_map(Auth::sign_in);
        let all = urls.chain(sign_in.map(SignIn::provider_id));
        all.map(str::to_owned).collect()
    }

    /// Adds the provider that users sign in at to those of tools, and lets sign-in use their store and
    /// keys. Does nothing the second time.
    #[cfg(feature = "sign-in")]
    pub(crate) fn join_sign_in(&mut self) {
        if let Some(auth) = &mut self.auth {
            auth.join_sign_in(&mut self.oauth);
        }
    }

    pub(crate) fn is_open(&self) -> bool {
        self.auth.as_ref().is_none_or(Auth::is_open)
    }
}

impl From<Toolkit> for Server {
    fn from(toolkit: Toolkit) -> Self {
        Self::new(toolkit)
    }
}
