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

use std::{collections::HashSet, fmt};

use auth::auth_setting;
pub(super) use auth::undecided;
pub(super) use overview::log;
use secrets::secrets_setting;
pub(super) use variables::{get, is_on_lambda, list, yes_or_no};

use super::Error;
use crate::{
    Auth, Server, ServerInfo, assemble::own_secrets, idempotency::Idempotency,
    protocol::origin::is_allowed_origin, quotas::Quota,
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
    let on_lambda = is_on_lambda();
    server.base_path = server.base_path.take().or(get("TOOLS_BASE_PATH")?);
    server.public_url = server.public_url.take().or(get("TOOLS_PUBLIC_URL")?);
    fill_auth(server, on_lambda)?;
    fill_origins(server)?;
    events::fill(server)?;
    fill_explorer(server)?;
    fill_stores(server, on_lambda)?;
    for (id, least) in server.auth.iter().flat_map(Auth::secret_lengths) {
        check_length(server, id, least)?;
    }
    check_info(&server.info)?;
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
    let entries = server.toolkit.entries().iter();
    let mut secrets = entries.flat_map(|it| &it.tool.requirements.secrets);
    let Some(secret) = secrets.find(|it| own.contains(&*it.id)) else {
        return Ok(());
    };
    invalid(format!(
        "a tool declares the secret '{}', which this server uses for itself: give the tool's another id",
        secret.id
    ))
}

fn fill_auth(server: &mut Server, on_lambda: bool) -> Result<(), InvalidSetting> {
    if server.auth.is_none() {
        server.auth = auth_setting(on_lambda)?;
    }
    let duplicate = server.auth.as_ref().and_then(Auth::duplicate_secret_id);
    duplicate.map_or(Ok(()), |id| {
        invalid(format!(
            "the secret '{id}' is listed twice, but each caller needs a secret that no other \
             caller has; write A|B for two secrets of one caller (TOOLS_API_KEY_IDS, \
             TOOLS_JWT_SECRET_IDS)"
        ))
    })
}

fn fill_origins(server: &mut Server) -> Result<(), InvalidSetting> {
    if server.allowed_origins.is_none() {
        server.allowed_origins = Some(list("TOOLS_ALLOWED_ORIGINS", "")?);
    }
    let mut origins = server.allowed_origins.iter().flatten();
    let wrong = origins.find(|origin| !is_allowed_origin(origin));
    wrong.map_or(Ok(()), |origin| {
        invalid(format!(
            "the allowed origin '{origin}' is not an origin: write a scheme and a host, and the \
             port unless it is the usual one, as in https://app.example, or * for all \
             (TOOLS_ALLOWED_ORIGINS)"
        ))
    })
}

fn fill_stores(server: &mut Server, on_lambda: bool) -> Result<(), InvalidSetting> {
    if server.secrets.is_none() {
        server.secrets = Some(secrets_setting(on_lambda)?);
    }
    if server.idempotency.is_none() {
        server.idempotency = Some(idempotency_setting()?);
    }
    fill_quotas(server)?;
    fill_metrics(server)
}

/// Rejects a secret that can be guessed. Those in other stores are checked when they are read.
fn check_length(server: &Server, id: &str, least: usize) -> Result<(), InvalidSetting> {
    if server.secrets.iter().all(|it| it.has_length(id, least)) {
        return Ok(());
    }
    invalid(format!(
        "the secret '{id}' must have at least {least} bytes: `openssl rand -hex 32` makes one"
    ))
}

#[cfg(any(feature = "oauth", feature = "oidc"))]
fn check_urls(server: &Server) -> Result<(), InvalidSetting> {
    let issuers = server.auth.iter().flat_map(Auth::issuer_urls);
    let issuers = issuers.map(|url| ("issuer", url, "TOOLS_OIDC_ISSUERS"));
    let public = server.public_url.as_deref();
    let public = public.map(|url| ("public URL", url, "TOOLS_PUBLIC_URL"));
    let mut urls = issuers.chain(public);
    let wrong = urls.find(|(_, url, _)| !crate::http_client::is_base_url(url));
    wrong.map_or(Ok(()), |(what, url, variable)| {
        invalid(format!(
            "the {what} is '{url}', but must be an https:// URL without a query, fragment or \
             credentials ({variable})"
        ))
    })
}

#[cfg(feature = "sign-in")]
fn check_sign_in(server: &Server) -> Result<(), InvalidSetting> {
    let sign_in = server.auth.as_ref().and_then(Auth::sign_in);
    let mistake = sign_in.and_then(crate::SignIn::config_error);
    mistake.map_or(Ok(()), |it| {
        invalid(format!("{it} (TOOLS_SIGN_IN_ALLOW, TOOLS_SIGN_IN_CLIENTS)"))
    })
}

/// Rejects an invalid namespace: CloudWatch ignores all of its metrics without reporting an error.
fn check_namespace(namespace: &str) -> Result<(), InvalidSetting> {
    let is_allowed = |it: char| it.is_ascii_alphanumeric() || ".-_/#: ".contains(it);
    let is_valid = (1..=255).contains(&namespace.len()) && namespace.chars().all(is_allowed);
    let is_valid = is_valid && !namespace.starts_with("AWS/") && !namespace.trim().is_empty();
    if is_valid {
        return Ok(());
    }
    invalid(format!(
        "the metrics namespace is '{namespace}', but must be 1 to 255 letters, digits, spaces \
         and .-_/#: and must not begin with AWS/ (TOOLS_METRICS_NAMESPACE)"
    ))
}

fn check_info(info: &ServerInfo) -> Result<(), InvalidSetting> {
    // OpenTool, `GET /version`: `x.y.z`.
    let version = &info.version;
    let parsed = version.parse::<semver::Version>();
    if !parsed.is_ok_and(|it| it.pre.is_empty() && it.build.is_empty()) {
        return invalid(format!(
            "the version in ServerInfo::new is '{version}', but must be x.y.z, such as 1.0.0"
        ));
    }
    if !info.is_support_url_valid() {
        return invalid(
            "the URL in ServerInfo::support_url must be an https:// URL without credentials, such \
             as https://example.com/help, or mailto: with one address, such as \
             mailto:help@example.com; spaces and characters outside of ASCII must be encoded",
        );
    }
    Ok(())
}

fn invalid<T>(text: impl Into<String>) -> Result<T, InvalidSetting> {
    Err(InvalidSetting(text.into()))
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
    match get("TOOLS_IDEMPOTENCY")?.as_deref() {
        None | Some("memory") => Ok(Idempotency::in_memory()),
        Some("none") => Ok(Idempotency::none()),
        #[cfg(feature = "dynamodb")]
        Some(_) => match get("TOOLS_IDEMPOTENCY_TABLE")? {
            Some(table) => Ok(Idempotency::in_store(crate::store::DynamoDb::new(table))),
            None => invalid(
                "TOOLS_IDEMPOTENCY=dynamodb needs the name of a table in TOOLS_IDEMPOTENCY_TABLE",
            ),
        },
        #[cfg(not(feature = "dynamodb"))]
        Some(_) => Err(without_feature("TOOLS_IDEMPOTENCY=dynamodb", "dynamodb")),
    }
}

fn fill_quotas(server: &mut Server) -> Result<(), InvalidSetting> {
    if server.quotas.is_empty() {
        for text in list("TOOLS_QUOTAS", "")? {
            let Some(quota) = Quota::parse(&text) else {
                return invalid(format!(
                    "TOOLS_QUOTAS has '{text}', but a quota is a subject, a limit and a window, such as \
                     caller=60/minute: the subject is all, caller, user, tool or tool:NAME; the window is \
                     minute or day"
                ));
            };
            server.quotas.push(quota);
        }
    }
    let quotas = &server.quotas;
    let is_double = |(at, it): (usize, &Quota)| quotas[..at].iter().any(|other| other.overlaps(it));
    if quotas.iter().enumerate().any(is_double) {
        return invalid("two quotas have the same subject and window; one would do (TOOLS_QUOTAS)");
    }
    let entries = server.toolkit.entries();
    let is_tool = |name: &str| entries.iter().any(|it| it.id.qualified() == name);
    let mut names = server.quotas.iter().filter_map(Quota::tool);
    names.find(|name| !is_tool(name)).map_or(Ok(()), |name| {
        invalid(format!(
            "a quota limits the calls of '{name}', which is not a tool of this server; names have no \
             version (TOOLS_QUOTAS)"
        ))
    })
}

fn fill_explorer(server: &mut Server) -> Result<(), InvalidSetting> {
    if server.explorer.is_none() {
        server.explorer = yes_or_no("TOOLS_EXPLORER")?;
    }
    if server.explorer.unwrap_or_default() && !cfg!(feature = "explorer") {
        return Err(without_feature("TOOLS_EXPLORER=yes", "explorer"));
    }
    Ok(())
}

fn fill_metrics(server: &mut Server) -> Result<(), InvalidSetting> {
    if let Some(metrics) = &server.metrics {
        return check_namespace(metrics);
    }
    let namespace = get("TOOLS_METRICS_NAMESPACE")?.unwrap_or_else(|| "lambda_tools".to_owned());
    check_namespace(&namespace)?;
    if get("TOOLS_METRICS")?.is_some_and(|it| it == "cloudwatch") {
        server.metrics = Some(namespace);
    }
    Ok(())
}

fn without_feature(setting: &str, feature: &str) -> InvalidSetting {
    InvalidSetting(format!(
        "{setting} needs the cargo feature '{feature}' of lambda_tools, which this program is \
         built without: lambda_tools = {{ …, features = [\"{feature}\"] }}"
    ))
}
