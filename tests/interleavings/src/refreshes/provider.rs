//! A provider that rotates refresh tokens: each works once.

use std::{collections::BTreeMap, time::Duration};

use http::{Request, Response};
use lambda_tools::oauth::TransportError;
use serde_json::{Value, json};

use crate::{
    network::{Connection, Network},
    shared::Shared,
};

/// The time in which the store must respond after a refresh, or the new tokens are lost.
const TO_SAVE: Duration = Duration::from_secs(6);

/// The time limit of a request.
const TIMEOUT: Duration = Duration::from_secs(8);

/// The provider's view of the grant, and the reasons for which it may be lost.
#[derive(Default, Hash)]
pub(super) struct ProviderState {
    /// The number of refreshes so far. The tokens that they return have their number.
    pub(super) refreshes: usize,
    pub(super) is_revoked: bool,
    /// The process that caused the last refresh, and when, until the store has its tokens.
    pub(super) unsaved: Option<(usize, Duration)>,
    /// True if nobody could save the tokens of a refresh.
    pub(super) is_lost: bool,
    /// The responses to calls: the token, if there is one; an error.
    pub(super) responses: BTreeMap<usize, Result<Option<String>, ()>>,
}

fn tokens(number: usize, expires_in: u64) -> Value {
    json!({
        "access_token": format!("a{number}"),
        "refresh_token": format!("r{number}"),
        "token_type": "bearer",
        "expires_in": expires_in,
        "scope": "mail",
    })
}

fn lease_holder(network: &Shared<Network>) -> Option<usize> {
    network.with(|network| {
        let mut records = network.records.iter();
        let (_, (_, writer)) = records.find(|(id, _)| id.starts_with("refresh#"))?;
        Some(writer.0)
    })
}

type Received = Result<Response<Vec<u8>>, TransportError>;

/// Sends a request of a process for tokens, as the library's HTTP client does.
pub(super) async fn transport(
    process: Connection,
    provider: Shared<ProviderState>,
    sent: Request<Vec<u8>>,
) -> Received {
    let body = String::from_utf8(sent.into_body()).unwrap();
    if body.contains("authorization_code") {
        // Expires within the margin for refreshes.
        return Ok(Response::new(tokens(0, 3).to_string().into_bytes()));
    }
    let network = &process.network;
    if network.with(|network| network.served().next().is_some()) {
        network.violate("two processes refresh at once");
    }
    if lease_holder(network) != Some(process.process) {
        network.violate("a process refreshes without the lease");
    }
    let Ok(received) = tokio::time::timeout(TIMEOUT, process.request(body)).await else {
        provider.with(ProviderState::lose);
        return Err(TransportError("did not answer in time"));
    };
    let body = received.filter(|body| !body.is_empty());
    let body = body.ok_or(TransportError("is not available at the moment"))?;
    let status = if body.contains("\"error\"") { 400 } else { 200 };
    let response = Response::builder().status(status).body(body.into_bytes());
    Ok(response.expect("the status is valid"))
}

impl ProviderState {
    /// Uses the refresh token in the body of a request. Returns the body of the response.
    pub(super) fn refresh(
        &mut self,
        process: usize,
        body: &str,
        network: &Shared<Network>,
    ) -> String {
        let number = body
            .split('&')
            .find_map(|it| it.strip_prefix("refresh_token=r"));
        let number: usize = number.and_then(|it| it.parse().ok()).unwrap_or(usize::MAX);
        if number < self.refreshes && !self.is_revoked {
            self.is_revoked = true;
            if !self.is_lost(network) {
                network.violate("a refresh token is used twice");
            }
        } else if number > 0 {
            // Only a process that knows the new tokens, which last an hour, can send this one.
            network.violate("a fresh grant is refreshed again");
        }
        if self.is_revoked {
            return json!({"error": "invalid_grant"}).to_string();
        }
        self.refreshes += 1;
        self.unsaved = Some((process, network.with(|network| network.now)));
        tokens(self.refreshes, 3600).to_string()
    }

    /// Returns true if nobody could save the tokens of a refresh.
    pub(super) fn is_lost(&mut self, network: &Shared<Network>) -> bool {
        self.is_lost |= self.unsaved.is_some_and(|(process, at)| {
            network.with(|network| {
                network.crashed.contains(&process) || network.now.saturating_sub(at) >= TO_SAVE
            })
        });
        self.is_lost
    }

    /// Records that the tokens of the last refresh cannot be saved any more.
    pub(super) fn lose(&mut self) {
        self.is_lost |= self.unsaved.is_some();
    }

    /// Records the response to a call: the token, if there is one.
    pub(super) fn respond(
        &mut self,
        call: usize,
        token: Result<Option<String>, ()>,
        network: &Shared<Network>,
    ) {
        match &token {
            Ok(None) if !self.is_lost(network) => network.violate("a grant was forgotten"),
            Err(()) if network.with(|network| network.disturbed.is_empty()) => {
                network.violate("a call failed although everything responded");
            }
            _ => {}
        }
        self.responses.insert(call, token);
    }
}
