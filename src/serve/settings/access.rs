//! Rules about who may call which tool, and secrets in headers.

use http::{HeaderName, header};

use super::{InvalidSetting, get, invalid, list};
use crate::{
    AgentCoreUser, Auth, Server,
    testing::record::is_harmless,
    text::matches,
    tool::{caller::CallerRule, parts::ToolParts},
    wire,
};

/// Adds the limits in `TOOLS_ALLOW`.
pub(super) fn restricted(auth: Option<Auth>) -> Result<Option<Auth>, InvalidSetting> {
    let setting = get("TOOLS_ALLOW")?.unwrap_or_default();
    let limits = setting.split(';').map(str::trim);
    let mut limits = limits.filter(|it| !it.is_empty()).peekable();
    if limits.peek().is_none() {
        return Ok(auth);
    }
    let restricted = limits.try_fold(auth.unwrap_or_default(), |auth, limit| {
        let Some((tools, rules)) = limit.split_once('=') else {
            return invalid(format!(
                "TOOLS_ALLOW has '{limit}', but needs tools and who may call them, such as \
                 Orders.*=group:staff"
            ));
        };
        Ok(auth.restrict(tools.trim(), rules.split(',')))
    });
    restricted.map(Some)
}

/// Finds a rule that would keep everybody out, and tools that are not there: both are slips.
pub(super) fn wrong_rule(server: &Server) -> Option<String> {
    let open = Auth::none();
    let auth = server.auth.as_ref().unwrap_or(&open);
    let is_tool = |it: &str| {
        let mut entries = server.toolkit.all();
        entries.any(|entry| matches(it, entry.id.qualified()))
    };
    let mut limits = auth.restrictions().iter();
    if let Some(limit) = limits.find(|it| !is_tool(&it.pattern)) {
        return Some(format!(
            "'{}' matches no tool of this server; names have no version (TOOLS_ALLOW)",
            limit.pattern
        ));
    }
    let limits = auth.restrictions().iter().map(|it| &*it.rules);
    let tools = server
        .toolkit
        .all()
        .filter_map(|it| it.tool.allowed.as_deref());
    let mut rules = limits.chain(tools).flatten();
    let text = match rules.find(|it| !auth.can_apply(it))? {
        CallerRule::Unknown(text) => format!(
            "'{text}' is not a rule: write group:NAME, user:ID or caller:SECRET_ID, and a comma \
             between two"
        ),
        CallerRule::Caller(id) => format!(
            "the rule 'caller:{id}' names no caller: it needs an id in TOOLS_API_KEY_IDS or \
             TOOLS_JWT_SECRET_IDS, the first one of those with |"
        ),
        rule => format!(
            "the rule '{rule}' applies to nobody, because no credentials name users: it needs \
             TOOLS_AUTH=oidc, sign-in or gateway, or a user also jwt with TOOLS_JWT_SUBJECT_IS_USER"
        ),
    };
    Some(format!("{text} (TOOLS_ALLOW, Tool::allow)"))
}

/// Reads `TOOLS_SECRET_HEADERS`.
pub(super) fn secret_headers() -> Result<Vec<(String, HeaderName)>, InvalidSetting> {
    let parse = |text: &String| {
        let parts = text.split_once('=');
        let parts = parts.map(|(id, name)| (id.trim().to_owned(), name.trim().parse()));
        match parts {
            Some((id, Ok(name))) => Ok((id, name)),
            _ => invalid(format!(
                "TOOLS_SECRET_HEADERS has '{text}', but needs the id of a secret and the name of a \
                 header, such as FIGMA_TOKEN=X-Figma-Token"
            )),
        }
    };
    list("TOOLS_SECRET_HEADERS", "")?
        .iter()
        .map(parse)
        .collect()
}

/// Finds a header that cannot bring a secret: no tool takes it, or the header means something else.
pub(super) fn wrong_secret_header(server: &Server) -> Option<String> {
    let headers = &server.secret_headers;
    let declares = |tool: &ToolParts, id: &str| {
        let mut secrets = tool.requirements.secrets.iter();
        secrets.any(|it| it.id == id)
    };
    let is_wrong = |(at, (id, name)): (usize, &(String, HeaderName))| {
        let mut entries = server.toolkit.all();
        let why = if !entries.any(|it| declares(&it.tool, id)) {
            "no tool declares this secret"
        } else if headers[..at].iter().any(|(other, _)| other == id) {
            "a secret comes in one header"
        } else if is_read(name, server.agentcore_user.as_ref()) {
            "this header has another meaning"
        } else {
            return None;
        };
        Some(format!("'{id}={name}': {why} (TOOLS_SECRET_HEADERS)"))
    };
    headers.iter().enumerate().find_map(is_wrong)
}

/// Returns true for a header that this server reads, or that clients and proxies write for themselves.
fn is_read(name: &HeaderName, user: Option<&AgentCoreUser>) -> bool {
    const PREFIXES: &str = "accept access-control- baggage content- forwarded if- mcp- proxy- referer \
                            sec- transfer- upgrade via x-amz x-forwarded- x-real-ip";

    let others = [header::AUTHORIZATION, header::COOKIE, header::CONNECTION];
    let user = user.map(|(AgentCoreUser::Header(it) | AgentCoreUser::Token(it))| it);
    others.contains(name)
        || user == Some(name)
        || *name == wire::oxp::API_KEY
        || PREFIXES.split(' ').any(|it| name.as_str().starts_with(it))
        || is_harmless(name.as_str())
}
