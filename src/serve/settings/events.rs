//! The kinds of events that the function accepts, and those whose responses are streams.

use super::{InvalidSetting, get, invalid};
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
    if !server.streaming.iter().flatten().all(can_stream) {
        return invalid(
            "only responses to function-url and rest-api can be streams (TOOLS_STREAMING, \
             Server::streaming)",
        );
    }
    let has_token = matches!(server.agentcore_user, Some(AgentCoreUser::Token(_)));
    if has_token && !server.auth.as_ref().is_some_and(Auth::reads_headers) {
        return invalid(
            "nothing checks the token that an AgentCore Gateway passes on \
             (Server::agentcore_user): TOOLS_AUTH has to accept access tokens, JWTs or API keys",
        );
    }
    Ok(())
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
