//! The kinds of events that the function accepts, and the user of a call from an AgentCore Gateway.

use http::HeaderName;

use super::{InvalidSetting, check, get, list};
use crate::{AgentCoreUser, EventKind, Server};

/// Fills in what the program has not set.
pub(super) fn fill(server: &mut Server) -> Result<(), InvalidSetting> {
    if server.events.is_none() {
        let kinds = list("TOOLS_EVENTS", "")?;
        let kinds: Vec<_> = kinds
            .iter()
            .map(|name| kind(name))
            .collect::<Result<_, _>>()?;
        server.events = Some(kinds).filter(|kinds| !kinds.is_empty());
    }
    if server.agentcore_user.is_none() {
        server.agentcore_user = agentcore_user()?;
    }
    let has_token = matches!(server.agentcore_user, Some(AgentCoreUser::Token(_)));
    check(!has_token || !server.is_open(), || {
        "nothing checks the token in the header of TOOLS_AGENTCORE_TOKEN_HEADER: TOOLS_AUTH has to \
         accept access tokens, JWTs or API keys"
            .into()
    })
}

fn kind(name: &str) -> Result<EventKind, InvalidSetting> {
    let known = EventKind::NAMES.iter().find(|(it, _)| *it == name);
    known.map(|(_, kind)| *kind).ok_or_else(|| {
        let names = EventKind::NAMES.map(|(name, _)| name).join(", ");
        InvalidSetting(format!(
            "TOOLS_EVENTS has '{name}', but may only have {names}"
        ))
    })
}

fn agentcore_user() -> Result<Option<AgentCoreUser>, InvalidSetting> {
    let user = header("TOOLS_AGENTCORE_USER_HEADER")?.map(AgentCoreUser::Header);
    let token = header("TOOLS_AGENTCORE_TOKEN_HEADER")?.map(AgentCoreUser::Token);
    check(user.is_none() || token.is_none(), || {
        "TOOLS_AGENTCORE_USER_HEADER and TOOLS_AGENTCORE_TOKEN_HEADER are mutually exclusive: a call \
         has one user"
            .into()
    })?;
    Ok(user.or(token))
}

fn header(variable: &str) -> Result<Option<HeaderName>, InvalidSetting> {
    let name = get(variable)?.map(HeaderName::try_from);
    let invalid = |_| InvalidSetting(format!("{variable} is not the name of a header"));
    name.transpose().map_err(invalid)
}
