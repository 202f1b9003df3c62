//! The owner's settings in the environment.
//!
//! The program takes precedence; settings fill in what it leaves open. An invalid setting is an
//! error at start-up: a mistyped `jwt` must not result in an open server.

mod access;
mod auth;
mod startup;
mod stores;
mod variables;

use std::fmt;

pub(super) use auth::undecided;
pub(super) use startup::log;
pub(super) use variables::{get, is_on_lambda, list, yes_or_no};

use super::Error;
use crate::{
    AgentCoreUser, Auth, EventKind, Server, assemble::own_secrets,
    protocol::origin::is_allowed_origin, quotas::Quota,
};

/// Fills in what the program has not set on `server`, and checks the result. An error also names the
/// variables that may be misspelt settings.
pub(crate) fn apply(server: &mut Server) -> Result<(), Error> {
    let filled = fill(server, is_on_lambda());
    // Also after an error: the provider that the program has set has a secret, too.
    #[cfg(feature = "sign-in")]
    server.join_sign_in();
    let mistake = filled.err().map(|InvalidSetting(text)| text);
    let mistake = mistake.or_else(|| CHECKS.iter().find_map(|mistake| mistake(server)));
    let Some(text) = mistake else {
        return Ok(());
    };
    let sentences = [vec![text], startup::unknown(server)].concat();
    Err(InvalidSetting(sentences.join(". ")).into())
}

fn fill(server: &mut Server, on_lambda: bool) -> Result<(), InvalidSetting> {
    or_read(&mut server.base_path, || get("TOOLS_BASE_PATH"))?;
    or_read(&mut server.public_url, || get("TOOLS_PUBLIC_URL"))?;
    or_read(&mut server.auth, || auth::setting(on_lambda))?;
    server.auth = access::restricted(server.auth.take())?;
    server.lists_callable |= get("TOOLS_LIST")?.as_deref() == Some("callable");
    if server.secret_headers.is_empty() {
        server.secret_headers = access::secret_headers()?;
    }
    let origins = list("TOOLS_ALLOWED_ORIGINS", "")?;
    server.allowed_origins.get_or_insert(origins);
    or_read(&mut server.events, || event_kinds("TOOLS_EVENTS"))?;
    or_read(&mut server.streaming, || event_kinds("TOOLS_STREAMING"))?;
    let features = [
        (&mut server.explorer, "explorer", cfg!(feature = "explorer")),
        (&mut server.openapi, "openapi", cfg!(feature = "openapi")),
        (&mut server.tasks, "tasks", cfg!(feature = "tasks")),
    ];
    for (setting, feature, is_compiled) in features {
        let name = format!("TOOLS_{}", feature.to_uppercase());
        or_read(setting, || yes_or_no(&name))?;
        if setting.unwrap_or_default() && !is_compiled {
            return without_feature(&format!("{name}=yes"), feature);
        }
    }
    or_read(&mut server.secrets, || stores::secrets(on_lambda).map(Some))?;
    or_read(&mut server.idempotency, || stores::calls().map(Some))?;
    if server.quotas.is_empty() {
        server.quotas = quotas()?;
    }
    or_read(&mut server.metrics, metrics)?;
    #[cfg(feature = "oauth")]
    or_read(&mut server.oauth, || auth::oauth(server.auth.as_ref()))?;
    #[cfg(not(feature = "oauth"))]
    for provider in variables::PROVIDERS {
        let name = format!("TOOLS_{provider}_CLIENT_ID");
        if get(&name)?.is_some() {
            return without_feature(&name, "oauth");
        }
    }
    Ok(())
}

/// Reads a value that the program has not set.
fn or_read<T>(
    value: &mut Option<T>,
    read: impl FnOnce() -> Result<Option<T>, InvalidSetting>,
) -> Result<(), InvalidSetting> {
    if value.is_none() {
        *value = read()?;
    }
    Ok(())
}

fn event_kinds(variable: &str) -> Result<Option<Vec<EventKind>>, InvalidSetting> {
    let kind = |name: &str| {
        let known = EventKind::NAMES.iter().find(|(it, _)| *it == name.trim());
        known.map(|(_, kind)| *kind).ok_or_else(|| {
            let names = EventKind::NAMES.map(|(name, _)| name).join(", ");
            InvalidSetting(format!(
                "{variable} has '{name}', but may only have {names}"
            ))
        })
    };
    let kinds = get(variable)?.map(|names| names.split(',').map(kind).collect());
    kinds.transpose()
}

fn quotas() -> Result<Vec<Quota>, InvalidSetting> {
    let parse = |text: &String| {
        Quota::parse(text).ok_or_else(|| {
            InvalidSetting(format!(
                "TOOLS_QUOTAS has '{text}', but a quota is a subject, a limit and a window, such as \
                 caller=60/minute: the subject is all, caller, user, tool or tool:NAME; the window is \
                 minute or day"
            ))
        })
    };
    list("TOOLS_QUOTAS", "")?.iter().map(parse).collect()
}

fn metrics() -> Result<Option<String>, InvalidSetting> {
    let namespace = get("TOOLS_METRICS_NAMESPACE")?;
    let is_on = get("TOOLS_METRICS")?.is_some_and(|it| it == "cloudwatch");
    Ok(is_on.then(|| namespace.unwrap_or_else(|| "lambda_tools".into())))
}

/// The checks of a server that has all its settings. Each returns the mistake that it is for, if the
/// server has it.
const CHECKS: &[fn(&Server) -> Option<String>] = &[
    duplicate_secret,
    wrong_origin,
    wrong_events,
    wrong_quota,
    access::wrong_rule,
    access::wrong_secret_header,
    wrong_namespace,
    |server| {
        let mut secrets = server.auth.iter().flat_map(Auth::secret_lengths);
        secrets.find_map(|(id, least)| short_secret(server, id, least))
    },
    wrong_info,
    #[cfg(any(feature = "oauth", feature = "oidc"))]
    wrong_url,
    #[cfg(feature = "sign-in")]
    |server| server.auth.as_ref()?.sign_in()?.config_error(),
    #[cfg(feature = "oauth")]
    wrong_oauth,
    shared_secret,
];

fn duplicate_secret(server: &Server) -> Option<String> {
    let id = server.auth.as_ref()?.duplicate_secret_id()?;
    Some(format!(
        "the secret '{id}' is listed twice, but each caller needs a secret that no other caller has; \
         write A|B for two secrets of one caller (TOOLS_API_KEY_IDS, TOOLS_JWT_SECRET_IDS)"
    ))
}

fn wrong_origin(server: &Server) -> Option<String> {
    let mut origins = server.allowed_origins.iter().flatten();
    let origin = origins.find(|origin| !is_allowed_origin(origin))?;
    Some(format!(
        "the allowed origin '{origin}' is not an origin: write a scheme and a host, and the port \
         unless it is the usual one, as in https://app.example, or * for all (TOOLS_ALLOWED_ORIGINS)"
    ))
}

fn wrong_events(server: &Server) -> Option<String> {
    let can_stream = |kind: &EventKind| [EventKind::FunctionUrl, EventKind::RestApi].contains(kind);
    let has_token = matches!(server.agentcore_user, Some(AgentCoreUser::Token(_)));
    let text = if !server.streaming.iter().flatten().all(can_stream) {
        "only responses to function-url and rest-api can be streams (TOOLS_STREAMING, \
         Server::streaming)"
    } else if has_token && !server.auth.as_ref().is_some_and(Auth::reads_headers) {
        "nothing checks the token that an AgentCore Gateway passes on (Server::agentcore_user): \
         TOOLS_AUTH has to accept access tokens, JWTs or API keys"
    } else {
        return None;
    };
    Some(text.to_owned())
}

fn wrong_quota(server: &Server) -> Option<String> {
    let quotas = &server.quotas;
    let is_double = |(at, it): (usize, &Quota)| quotas[..at].iter().any(|other| other.overlaps(it));
    if quotas.iter().enumerate().any(is_double) {
        let text = "two quotas have the same subject and window; one would do (TOOLS_QUOTAS)";
        return Some(text.to_owned());
    }
    let is_tool = |name: &str| server.toolkit.all().any(|it| it.id.qualified() == name);
    let mut names = quotas.iter().filter_map(Quota::tool);
    let name = names.find(|name| !is_tool(name))?;
    Some(format!(
        "a quota limits the calls of '{name}', which is not a tool of this server; names have no \
         version (TOOLS_QUOTAS)"
    ))
}

/// Finds an invalid namespace, even if it is not used: CloudWatch ignores all of its metrics without
/// reporting an error.
fn wrong_namespace(server: &Server) -> Option<String> {
    let variable = get("TOOLS_METRICS_NAMESPACE").ok().flatten();
    let set = server.metrics.as_deref();
    let namespace = set.or(variable.as_deref())?;
    let is_allowed = |it: char| it.is_ascii_alphanumeric() || ".-_/#: ".contains(it);
    let is_valid = (1..=255).contains(&namespace.len())
        && namespace.chars().all(is_allowed)
        && !namespace.starts_with("AWS/")
        && !namespace.trim().is_empty();
    (!is_valid).then(|| {
        format!(
            "the metrics namespace is '{namespace}', but must be 1 to 255 letters, digits, spaces \
             and .-_/#: and must not begin with AWS/ (TOOLS_METRICS_NAMESPACE)"
        )
    })
}

/// Finds a secret that can be guessed. Those in other stores are checked when they are read.
fn short_secret(server: &Server, id: &str, least: usize) -> Option<String> {
    let is_long = server.secrets.iter().all(|it| it.has_length(id, least));
    (!is_long).then(|| {
        format!(
            "the secret '{id}' must have at least {least} bytes: `openssl rand -hex 32` makes one"
        )
    })
}

fn wrong_info(server: &Server) -> Option<String> {
    // OpenTool, `GET /version`: `x.y.z`.
    let version = &server.info.version;
    let is_release = |it: semver::Version| it.pre.is_empty() && it.build.is_empty();
    if !version.parse().is_ok_and(is_release) {
        return Some(format!(
            "the version in ServerInfo::new is '{version}', but must be x.y.z, such as 1.0.0"
        ));
    }
    let text = "the URL in ServerInfo::support_url must be an https:// URL without credentials, such \
        as https://example.com/help, or mailto: with one address, such as mailto:help@example.com; \
        spaces and characters outside of ASCII must be encoded";
    (!server.info.is_support_url_valid()).then(|| text.to_owned())
}

#[cfg(any(feature = "oauth", feature = "oidc"))]
fn wrong_url(server: &Server) -> Option<String> {
    let issuers = server.auth.iter().flat_map(Auth::issuer_urls);
    let issuers = issuers.map(|url| ("issuer", url, "TOOLS_OIDC_ISSUERS"));
    let public = server.public_url.iter();
    let public = public.map(|url| ("public URL", &**url, "TOOLS_PUBLIC_URL"));
    let mut urls = issuers.chain(public);
    let (what, url, variable) =
        urls.find(|(_, url, _)| !lambda_tools_accounts::is_base_url(url))?;
    Some(format!(
        "the {what} is '{url}', but must be an https:// URL without a query, fragment or credentials \
         ({variable})"
    ))
}

#[cfg(feature = "oauth")]
fn wrong_oauth(server: &Server) -> Option<String> {
    let oauth = server.oauth.as_ref()?;
    if is_on_lambda() && oauth.is_in_memory() {
        let text = "on Lambda, users' grants need a table in DynamoDB, because instances do not \
            share memory: set TOOLS_OAUTH_TABLE, or call OAuth::in_dynamodb in the program";
        return Some(text.to_owned());
    }
    let short = |id: &str| short_secret(server, id, crate::oauth::SHORTEST);
    let mistake = oauth.keys().find_map(short);
    mistake.or_else(|| oauth.config_error())
}

/// Finds a tool that would get a secret of the server itself: one that is made from a document would
/// send it to the document's API.
fn shared_secret(server: &Server) -> Option<String> {
    // Also those of the clients for AWS.
    let is_own = |id: &str| {
        matches!(
            id,
            "AWS_ACCESS_KEY_ID" | "AWS_SECRET_ACCESS_KEY" | "AWS_SESSION_TOKEN"
        ) || own_secrets(server).any(|own| own == id)
    };
    let mut secrets = server
        .toolkit
        .all()
        .flat_map(|it| &it.tool.requirements.secrets);
    let secret = secrets.find(|it| is_own(&it.id))?;
    Some(format!(
        "a tool declares the secret '{}', which this server uses for itself: give the tool's another id",
        secret.id
    ))
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

fn invalid<T>(text: impl Into<String>) -> Result<T, InvalidSetting> {
    Err(InvalidSetting(text.into()))
}

fn without_feature<T>(setting: &str, feature: &str) -> Result<T, InvalidSetting> {
    invalid(format!(
        "{setting} needs the cargo feature '{feature}' of lambda_tools, which this program is \
         built without: lambda_tools = {{ …, features = [\"{feature}\"] }}"
    ))
}
