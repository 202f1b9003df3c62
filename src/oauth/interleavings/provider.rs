//! A provider that rotates refresh tokens: each works once.

use std::{cell::RefCell, collections::BTreeSet, time::Duration};

use serde_json::json;

use crate::store::explorer::{Identity, service_requests, writer_of};

/// The time in which the store must respond after a refresh, or the new tokens are lost.
const TO_SAVE: Duration = Duration::from_secs(6);

thread_local! {
    static PROVIDER: RefCell<ProviderState> = RefCell::default();
}

pub(super) fn with_provider<T>(change: impl FnOnce(&mut ProviderState) -> T) -> T {
    PROVIDER.with_borrow_mut(change)
}

/// The provider's view of the grant, and the reasons for which it may be lost.
#[derive(Default, Hash)]
pub(super) struct ProviderState {
    /// The number of refreshes so far. The tokens that they return have their number.
    pub(super) refreshes: usize,
    pub(super) is_revoked: bool,
    /// The process that caused the last refresh, until the store has its tokens.
    pub(super) unsaved: Option<usize>,
    /// The time since then.
    pub(super) unsaved_for: Duration,
    /// The reason why nobody could save the tokens of a refresh. Then the grant is lost.
    pub(super) loss: Option<&'static str>,
    /// The requests that have been checked.
    checked: BTreeSet<Identity>,
    /// The responses to calls: the number of the token, if there is one; an error.
    pub(super) responses: Vec<(usize, Result<Option<usize>, ()>)>,
    /// True after a process or a request failed, or got no response for some time.
    pub(super) is_disturbed: bool,
    pub(super) violation: Option<String>,
}

impl ProviderState {
    pub(super) fn violate(&mut self, rule: &str) {
        self.violation.get_or_insert(rule.to_owned());
    }

    /// Uses the refresh token in the body of a request. Returns the body of the response.
    pub(super) fn refresh(&mut self, process: usize, body: &str) -> String {
        let number = body
            .split('&')
            .find_map(|it| it.strip_prefix("refresh_token=r"));
        let number: usize = number.and_then(|it| it.parse().ok()).unwrap_or(usize::MAX);
        if number > self.refreshes {
            self.violate("a refresh token that was never issued");
        } else if number < self.refreshes && !self.is_revoked {
            self.is_revoked = true;
            if self.loss.is_none() {
                self.violate("a refresh token is used twice");
            }
        } else if number > 0 {
            // Only a process that knows the new tokens, which last an hour, can send this one.
            self.violate("a fresh grant is refreshed again");
        }
        if self.is_revoked {
            return json!({"error": "invalid_grant"}).to_string();
        }
        self.refreshes += 1;
        self.unsaved = Some(process);
        json!({
            "access_token": format!("a{}", self.refreshes),
            "refresh_token": format!("r{}", self.refreshes),
            "token_type": "bearer",
            "expires_in": 3600,
        })
        .to_string()
    }

    pub(super) fn save(&mut self) {
        self.unsaved = None;
        self.unsaved_for = Duration::ZERO;
    }

    pub(super) fn pass(&mut self, time: Duration) {
        if self.unsaved.is_some() {
            self.unsaved_for += time;
        }
        if self.unsaved_for >= TO_SAVE {
            self.lose("the store did not respond for too long");
        }
    }

    /// Records that the tokens of the last refresh cannot be saved any more.
    pub(super) fn lose(&mut self, reason: &'static str) {
        if self.unsaved.is_some() {
            self.loss.get_or_insert(reason);
        }
    }

    /// Checks the requests on their way to the provider.
    pub(super) fn check_requests(&mut self) {
        let requests = service_requests();
        if requests
            .iter()
            .filter(|(_, _, is_awaited)| *is_awaited)
            .count()
            > 1
        {
            self.violate("two processes refresh at once");
        }
        for (from, ..) in &requests {
            if self.checked.insert(*from) && writer_of("refresh#") != Some(from.0) {
                self.violate("a process refreshes without the lease");
            }
        }
        let is_unheard =
            |(_, text, is_awaited): &(_, String, bool)| !is_awaited && text.starts_with('{');
        if requests.iter().any(is_unheard) {
            self.lose("the provider's response took too long");
        }
    }

    /// Records the response to a call: the name of the token, if there is one.
    pub(super) fn respond(&mut self, call: usize, token: Result<Option<String>, ()>) {
        let number = token.map(|token| {
            let number = token.map(|it| it.strip_prefix('a').and_then(|it| it.parse().ok()));
            number.map(|it| it.unwrap_or(usize::MAX))
        });
        match number {
            Ok(Some(number)) if number > self.refreshes => {
                self.violate("a token that was never issued");
            }
            Ok(None) if self.loss.is_none() => self.violate("a grant was forgotten"),
            Err(()) if !self.is_disturbed => {
                self.violate("a call failed although everything responded");
            }
            _ => {}
        }
        self.responses.push((call, number));
    }

    pub(super) fn response_to(&self, call: usize) -> Option<Result<Option<usize>, ()>> {
        let mut responses = self.responses.iter();
        responses.find(|(it, _)| *it == call).map(|(_, it)| *it)
    }
}
