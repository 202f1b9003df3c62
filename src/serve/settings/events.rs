//! The kinds of events that the function accepts, and the user of a call from an AgentCore Gateway.

use http::HeaderName;

use super::{InvalidSetting, check, get};
use crate::{AgentCoreUser, Auth, EventKind, Server};

/// Fills in what the program has not set.
pub(super) fn fill(server: &mut Server) -> Result<(), InvalidSetting> {
    if server.events.is_none() {
        server.events = kinds("TOOLS_EVENTS")?;
    }
    if server.streaming.is_none() {
        server.streaming = kinds("TOOLS_STREAMING")?;
    }
    let can_stream = |kind: &EventKind| [EventKind::FunctionUrl, EventKind::RestApi].contains(kind);
    check(server.streaming.iter().flatten().all(can_stream), || {
        "only responses to function-url and rest-api can be streams (TOOLS_STREAMING, \
         Server::streaming)"
            .into()
    })?;
    if server.agentcore_user.is_none() {
        server.agentcore_user = agentcore_user()?;
    }
    let has_token = matches!(server.agentcore_user, Some(AgentCoreUser::Token(_)));
    let checks_token = server.auth.as_ref().is_some_and(Auth::reads_headers);
    check(!has_token || checks_token, || {
        "nothing checks the token that an AgentCore Gateway passes on \
         (TOOLS_AGENTCORE_TOKEN_HEADER, Server::agentcore_user): TOOLS_AUTH has to accept access \
         tokens, JWTs or API keys"
            .into()
    })
}

fn kinds(variable: &str) -> Result<Option<Vec<EventKind>>, InvalidSetting> {
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

fn agentcore_user() -> Result<Option<AgentCoreUser>, InvalidSetting> {
    let user = header("TOOLS_AGENTCORE_USER_HEADER")?.map(AgentCoreUser::Header);
    let token = header("TOOLS_AGENTCORE_TOKEN_HEADER")?.map(AgentCoreUser::Token);
    Ok(token.or(user))
}

fn header(variable: &str) -> Result<Option<HeaderName>, InvalidSetting> {
    let name = get(variable)?.map(HeaderName::try_from);
    let invalid = |_| InvalidSetting(format!("{variable} is not the name of a header"));
    name.transpose().map_err(invalid)
}
