//! Grants: what a user has allowed, as it is kept.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::exchange::Tokens;

/// Not for comparing: providers leave them out of what they say was granted.
const ALIASES: [&str; 4] = ["email", "offline_access", "openid", "profile"];

/// Longer than anybody goes without using a tool; refreshing begins it anew.
pub(super) const KEPT_FOR: Duration = Duration::from_hours(400 * 24);

#[derive(Clone, Deserialize, Serialize)]
pub(super) struct Grant {
    pub(super) access: String,
    pub(super) refresh: Option<String>,
    /// Seconds since 1970.
    pub(super) expires_at: Option<u64>,
    pub(super) scopes: Vec<String>,
}

impl Grant {
    pub(super) fn of(tokens: Tokens, asked_for: &[String], now: SystemTime) -> Self {
        Self {
            access: tokens.access,
            refresh: tokens.refresh,
            expires_at: expiry(tokens.lives_for, now),
            // RFC 6749, 5.1: not said if it is what was asked for.
            scopes: tokens.scopes.unwrap_or_else(|| asked_for.to_vec()),
        }
    }

    /// The same after a refresh. What the answer leaves out stays.
    pub(super) fn refreshed(&self, tokens: Tokens, now: SystemTime) -> Self {
        Self {
            access: tokens.access,
            refresh: tokens.refresh.or_else(|| self.refresh.clone()),
            expires_at: expiry(tokens.lives_for, now),
            scopes: tokens.scopes.unwrap_or_else(|| self.scopes.clone()),
        }
    }

    pub(super) fn has_all(&self, scopes: &[String]) -> bool {
        let has = |scope: &String| self.scopes.contains(scope) || ALIASES.contains(&scope.as_str());
        scopes.iter().all(has)
    }

    /// How long the access token is still good.
    pub(super) fn left(&self, now: SystemTime) -> Duration {
        let Some(expires_at) = self.expires_at else {
            return Duration::MAX;
        };
        let now = now.duration_since(UNIX_EPOCH).unwrap_or_default();
        Duration::from_secs(expires_at).saturating_sub(now)
    }
}

fn expiry(lives_for: Option<Duration>, now: SystemTime) -> Option<u64> {
    let now = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    Some(now.saturating_add(lives_for?).as_secs())
}
