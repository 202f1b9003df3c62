//! The owner's settings in the environment.
//!
//! The program takes precedence; settings fill in what it leaves open. An invalid setting is an
//! error at start-up: a mistyped `jwt` must not result in an open server.

mod auth;
mod events;
#[cfg_attr(not(feature = "oauth"), path = "settings/oauth/off.rs")]
mod oauth;
mod overview;
mod secrets;
mod unknown;
mod variables;

use std::{collections::HashSet, env, fmt};

use auth::auth_setting;
pub(super) use auth::undecided;
pub(super) use overview::log;
use secrets::secrets_setting;
pub(super) use variables::{choice, get, list, seconds, yes_or_no};

use super::Error;
use crate::{
    Auth, Server, ServerInfo, assemble::own_secrets, idempotency::Idempotency,
    observe::metrics::Metrics, protocol::origin::is_allowed_origin, quotas::Quota,
};

/// Fills in what the program has not set on `server`. An error also names the variables that may be
/// misspelt settings.
pub(crate) fn apply(server: &mut Server) -> Result<(), Error> {
    fill(server).map_err(|InvalidSetting(text)| {
        // The provider that the program has set has a secret, too.
        #[cfg(feature = "sign-in")]
        server.join_sign_in();
        let unknown = unknown::sentences(server).into_iter();
        let sentences: Vec<_> = std::iter::once(text).chain(unknown).collect();
        InvalidSetting(sentences.join(". ")).into()
    })
}

fn fill(server: &mut Server) -> Result<(), InvalidSetting> {
    let on_lambda = env::var_os("AWS_LAMBDA_RUNTIME_API").is_some();
    if server.base_path.is_none() {
        server.base_path = get("TOOLS_BASE_PATH")?;
    }
    fill_auth(server, on_lambda)?;
    fill_origins(server)?;
    events::fill(server)?;
    if server.lists_callable.is_none() {
        server.lists_callable = choice("TOOLS_LIST", &[("all", false), ("callable", true)])?;
    }
    explorer_setting(server)?;
    fill_stores(server, on_lambda)?;
    for (id, least) in server.auth.iter().flat_map(Auth::secret_lengths) {
        check_length(server, id, least)?;
    }
    check_info(&server.info)?;
    if server.public_url.is_none() {
        server.public_url = get("TOOLS_PUBLIC_URL")?;
    }
    #[cfg(any(feature = "oauth", feature = "oidc"))]
    check_urls(server)?;
    #[cfg(feature = "sign-in")]
    check_sign_in(server)?;
    oauth::apply(server, on_lambda)?;
    check_tools(server)
}

/// Checks that no tool gets a secret of the server itself: one that is made from a document would
/// send it to the document's API.
fn check_tools(server: &Server) -> Result<(), InvalidSetting> {
    let mut own: HashSet<_> = own_secrets(server).collect();
    // Those of the clients for AWS.
    own.extend([
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN",
    ]);
    let entries = server.toolkit().entries().iter();
    let mut secrets = entries.flat_map(|it| &it.tool.requirements.secrets);
    let shared = secrets.find(|it| own.contains(&*it.id));
    check(shared.is_none(), || {
        let id = shared.map_or("", |it| &it.id);
        format!(
            "a tool declares the secret '{id}', which this server uses for itself: give the tool's another id"
        )
    })
}

fn fill_auth(server: &mut Server, on_lambda: bool) -> Result<(), InvalidSetting> {
    if server.auth.is_none() {
        server.auth = auth_setting(on_lambda)?;
    }
    let duplicate = server.auth.as_ref().and_then(Auth::duplicate_secret_id);
    check(duplicate.is_none(), || {
        let id = duplicate.unwrap_or_default();
        format!(
            "the secret '{id}' is listed twice, but each caller needs a secret that no other \
             caller has; write A|B for two secrets of one caller (TOOLS_API_KEY_IDS, \
             TOOLS_JWT_SECRET_IDS)"
        )
    })
}

fn fill_origins(server: &mut Server) -> Result<(), InvalidSetting> {
    if server.allowed_origins.is_none() {
        server.allowed_origins = Some(list("TOOLS_ALLOWED_ORIGINS", "")?);
    }
    for origin in server.allowed_origins.iter().flatten() {
        check(is_allowed_origin(origin), || {
            format!(
                "the allowed origin '{origin}' is not an origin: write a scheme and a host, and the \
                 port unless it is the usual one, as in https://app.example, or * for all \
                 (TOOLS_ALLOWED_ORIGINS)"
            )
        })?;
    }
    Ok(())
}

fn fill_stores(server: &mut Server, on_lambda: bool) -> Result<(), InvalidSetting> {
    if server.secrets.is_none() {
        server.secrets = Some(secrets_setting(on_lambda)?);
    }
    if server.idempotency.is_none() {
        server.idempotency = Some(idempotency_setting()?);
    }
    quotas_setting(server)?;
    if server.metrics.is_none() {
        server.metrics = metrics_setting()?;
    }
    if let Some(namespace) = server.metrics.as_ref().map(Metrics::namespace) {
        check_namespace(namespace)?;
    }
    Ok(())
}

/// Rejects a secret that can be guessed. Those in other stores are checked when they are read.
fn check_length(server: &Server, id: &str, least: usize) -> Result<(), InvalidSetting> {
    let mut secrets = server.secrets.iter();
    check(secrets.all(|it| it.has_length(id, least)), || {
        format!(
            "the secret '{id}' must have at least {least} bytes: `openssl rand -hex 32` makes one"
        )
    })
}

fn check(is_valid: bool, text: impl FnOnce() -> String) -> Result<(), InvalidSetting> {
    if is_valid {
        return Ok(());
    }
    Err(InvalidSetting(text()))
}

#[cfg(any(feature = "oauth", feature = "oidc"))]
fn check_urls(server: &Server) -> Result<(), InvalidSetting> {
    let issuers = server.auth.iter().flat_map(Auth::issuer_urls);
    let issuers = issuers.map(|url| ("issuer", url, "TOOLS_OIDC_ISSUERS"));
    let public = server.public_url.as_deref();
    let public = public.map(|url| ("public URL", url, "TOOLS_PUBLIC_URL"));
    for (what, url, variable) in issuers.chain(public) {
        check(crate::http_client::is_base_url(url), || {
            format!(
                "the {what} is '{url}', but must be an https:// URL without a query, fragment or \
                 credentials ({variable})"
            )
        })?;
    }
    Ok(())
}

#[cfg(feature = "sign-in")]
fn check_sign_in(server: &Server) -> Result<(), InvalidSetting> {
    let sign_in = server.auth.as_ref().and_then(Auth::sign_in);
    let mistake = sign_in.and_then(crate::SignIn::config_error);
    check(mistake.is_none(), || {
        let mistake = mistake.unwrap_or_default();
        format!("{mistake} (TOOLS_SIGN_IN_ALLOW, TOOLS_SIGN_IN_CLIENTS)")
    })
}

/// Rejects an invalid namespace: CloudWatch ignores all of its metrics without reporting an error.
fn check_namespace(namespace: &str) -> Result<(), InvalidSetting> {
    let is_allowed = |it: char| it.is_ascii_alphanumeric() || ".-_/#: ".contains(it);
    let is_valid = (1..=255).contains(&namespace.len()) && namespace.chars().all(is_allowed);
    let is_valid = is_valid && !namespace.starts_with("AWS/") && !namespace.trim().is_empty();
    check(is_valid, || {
        format!(
            "the metrics namespace is '{namespace}', but must be 1 to 255 letters, digits, spaces \
             and .-_/#: and must not begin with AWS/ (TOOLS_METRICS_NAMESPACE)"
        )
    })
}

fn check_info(info: &ServerInfo) -> Result<(), InvalidSetting> {
    // OpenTool, `GET /version`: `x.y.z`.
    let version = info.version();
    let parsed = version.parse::<semver::Version>();
    let is_valid = parsed.is_ok_and(|it| it.pre.is_empty() && it.build.is_empty());
    check(is_valid, || {
        format!("the version in ServerInfo::new is '{version}', but must be x.y.z, such as 1.0.0")
    })?;
    check(info.is_support_url_valid(), || {
        "the URL in ServerInfo::support_url must be an https:// URL without credentials, such as \
         https://example.com/help, or mailto: with one address, such as mailto:help@example.com; \
         spaces and characters outside of ASCII must be encoded"
            .into()
    })
}

/// An invalid setting; the text says how to correct it.
pub(super) struct InvalidSetting(pub(super) String);

impl fmt::Display for InvalidSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The same as `Display`: `main` prints its error with `Debug`.
impl fmt::Debug for InvalidSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for InvalidSetting {}

fn idempotency_setting() -> Result<Idempotency, InvalidSetting> {
    type Store = fn() -> Result<Idempotency, InvalidSetting>;
    let memory: Store = || Ok(Idempotency::in_memory());
    let stores: [(&str, Store); 3] = [
        ("memory", memory),
        ("dynamodb", in_dynamodb),
        ("none", || Ok(Idempotency::none())),
    ];
    let mut idempotency = choice("TOOLS_IDEMPOTENCY", &stores)?.unwrap_or(memory)()?;
    if let Some(time) = seconds("TOOLS_IDEMPOTENCY_SECONDS")? {
        idempotency = idempotency.expire_after(time);
    }
    if let Some(time) = seconds("TOOLS_IDEMPOTENCY_WAIT_SECONDS")? {
        idempotency = idempotency.wait_for(time);
    }
    Ok(match yes_or_no("TOOLS_IDEMPOTENCY_REQUIRED")? {
        None | Some(true) => idempotency,
        Some(false) => idempotency.best_effort(),
    })
}

fn quotas_setting(server: &mut Server) -> Result<(), InvalidSetting> {
    if server.quotas.is_empty() {
        let is_required = yes_or_no("TOOLS_QUOTAS_REQUIRED")?.unwrap_or(true);
        for text in list("TOOLS_QUOTAS", "")? {
            let Some(quota) = Quota::parse(&text) else {
                return Err(InvalidSetting(format!(
                    "TOOLS_QUOTAS has '{text}', but a quota is a subject, a limit and a window, such as \
                     caller=60/minute: the subject is all, caller, user, tool or tool:NAME; the window is \
                     minute or day"
                )));
            };
            let best_effort = || quota.clone().best_effort();
            server
                .quotas
                .push(if is_required { quota } else { best_effort() });
        }
    }
    let quotas = &server.quotas;
    let is_double = |(at, it): (usize, &Quota)| quotas[..at].iter().any(|other| other.overlaps(it));
    check(!quotas.iter().enumerate().any(is_double), || {
        "two quotas have the same subject and window; one would do (TOOLS_QUOTAS)".into()
    })?;
    let entries = server.toolkit().entries();
    let is_tool = |name: &str| entries.iter().any(|it| it.id.qualified() == name);
    let mut names = server.quotas.iter().filter_map(Quota::tool);
    match names.find(|name| !is_tool(name)) {
        None => Ok(()),
        Some(name) => Err(InvalidSetting(format!(
            "a quota limits the calls of '{name}', which is not a tool of this server; names have no \
             version (TOOLS_QUOTAS)"
        ))),
    }
}

fn explorer_setting(server: &mut Server) -> Result<(), InvalidSetting> {
    if server.explorer.is_none() {
        server.explorer = yes_or_no("TOOLS_EXPLORER")?;
    }
    if server.has_explorer() && !cfg!(feature = "explorer") {
        return Err(without_feature("TOOLS_EXPLORER=yes", "explorer"));
    }
    Ok(())
}

fn metrics_setting() -> Result<Option<Metrics>, InvalidSetting> {
    let namespace = get("TOOLS_METRICS_NAMESPACE")?.unwrap_or_else(|| "lambda_tools".to_owned());
    check_namespace(&namespace)?;
    if choice("TOOLS_METRICS", &[("cloudwatch", true), ("none", false)])? != Some(true) {
        return Ok(None);
    }
    Ok(Some(Metrics::in_namespace(namespace)))
}

fn in_dynamodb() -> Result<Idempotency, InvalidSetting> {
    let store = dynamodb("TOOLS_IDEMPOTENCY=dynamodb")?;
    let Some(table) = get("TOOLS_IDEMPOTENCY_TABLE")? else {
        let text = "TOOLS_IDEMPOTENCY=dynamodb needs the name of a table in \
            TOOLS_IDEMPOTENCY_TABLE";
        return Err(InvalidSetting(text.into()));
    };
    Ok(Idempotency::in_store(store(table)))
}

/// Returns the store of records in a table, by the table's name.
#[cfg(feature = "dynamodb")]
#[expect(
    clippy::unnecessary_wraps,
    reason = "the same with and without the feature"
)]
fn dynamodb(_: &str) -> Result<fn(String) -> crate::store::DynamoDb, InvalidSetting> {
    Ok(crate::store::DynamoDb::new)
}

/// Returns an error that names the setting: without the Cargo feature, there is no such store.
#[cfg(not(feature = "dynamodb"))]
fn dynamodb(setting: &str) -> Result<fn(String) -> crate::store::memory::Memory, InvalidSetting> {
    Err(without_feature(setting, "dynamodb"))
}

fn without_feature(setting: &str, feature: &str) -> InvalidSetting {
    InvalidSetting(format!(
        "{setting} needs the cargo feature '{feature}' of lambda_tools, which this program is \
         built without: lambda_tools = {{ …, features = [\"{feature}\"] }}"
    ))
}
