//! The kinds of events that the function accepts, and the user of a call from an AgentCore Gateway.

use http::HeaderName;

use super::{InvalidSetting, check, get, list};
use crate::{AgentCoreUser, EventKind, Server};

/// Fills in what the program has not set.
pub(super) fn fill(server: &mut Server) -> Result<(), InvalidSetting> {
    if server.events.is_none() {
        server.events = kinds()?;
    }
    if server.agentcore_user.is_none() {
        server.agentcore_user = agentcore_user()?;
    }
    let Some(user) = &server.agentcore_user else {
        return Ok(());
    };
    check(HeaderName::try_from(user.header()).is_ok(), || {
        format!(
            "'{}' is not the name of a header (TOOLS_AGENTCORE_USER_HEADER, \
             TOOLS_AGENTCORE_TOKEN_HEADER)",
            user.header()
        )
    })?;
    let is_checked = !matches!(user, AgentCoreUser::Token(_)) || !server.is_open();
    check(is_checked, || {
        "nothing checks the token in the header of TOOLS_AGENTCORE_TOKEN_HEADER: TOOLS_AUTH has to \
         accept access tokens, JWTs or API keys"
            .into()
    })
}

fn kinds() -> Result<Option<Vec<EventKind>>, InvalidSetting> {
    let mut kinds = Vec::new();
    for name in list("TOOLS_EVENTS", "")? {
        let known = EventKind::NAMES.iter().find(|(it, _)| *it == name);
        let Some((_, kind)) = known else {
            let names: Vec<_> = EventKind::NAMES.iter().map(|(name, _)| *name).collect();
            let names = names.join(", ");
            let text = format!("TOOLS_EVENTS has '{name}', but may only have {names}");
            return Err(InvalidSetting(text));
        };
        kinds.push(*kind);
    }
    Ok(Some(kinds).filter(|kinds| !kinds.is_empty()))
}

fn agentcore_user() -> Result<Option<AgentCoreUser>, InvalidSetting> {
    let user = get("TOOLS_AGENTCORE_USER_HEADER")?.map(AgentCoreUser::Header);
    let token = get("TOOLS_AGENTCORE_TOKEN_HEADER")?.map(AgentCoreUser::Token);
    check(user.is_none() || token.is_none(), || {
        "TOOLS_AGENTCORE_USER_HEADER and TOOLS_AGENTCORE_TOKEN_HEADER are mutually exclusive: a call \
         has one user"
            .into()
    })?;
    Ok(user.or(token))
}
