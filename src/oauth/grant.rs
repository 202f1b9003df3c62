//! Grants: what a user has allowed, as it is kept.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::{exchange::ProviderTokens, records::Stored};

/// Providers leave these out of what they say was granted, or write them in other words.
const UNSAID: [&str; 4] = ["email", "offline_access", "openid", "profile"];

/// Longer than anybody goes without using a tool; refreshing begins it anew.
pub(super) const KEPT_FOR: Duration = Duration::from_hours(400 * 24);

/// All that a user has allowed at one provider: tools that need different things may have been
/// allowed one after the other, and a token is for what it was given for.
#[derive(Clone, Default, Deserialize, Serialize)]
pub(super) struct Grants(pub(super) Vec<Grant>);

impl Stored for Grants {
    /// What users have allowed stays.
    fn owner(&self) -> Option<&str> {
        None
    }
}

impl Grants {
    /// The grant that has all scopes, and of several the one that is good for longest.
    pub(super) fn best(&self, scopes: &[String], now: SystemTime) -> Option<&Grant> {
        let fitting = self.0.iter().filter(|grant| grant.has_all(scopes));
        fitting.max_by_key(|grant| grant.left(now))
    }

    /// Adds a grant; those that it makes superfluous go.
    pub(super) fn add(&mut self, new: Grant) {
        self.0.retain(|old| !new.has_all(&old.scopes));
        self.0.push(new);
    }

    /// Removes the grant with this token; returns whether it was there.
    pub(super) fn remove(&mut self, access: &str) -> bool {
        let before = self.0.len();
        self.0.retain(|grant| grant.access != access);
        self.0.len() < before
    }

    pub(super) fn scopes(&self) -> impl Iterator<Item = &String> {
        self.0.iter().flat_map(|grant| &grant.scopes)
    }
}

#[derive(Clone, Deserialize, Serialize)]
pub(super) struct Grant {
    pub(super) access: String,
    pub(super) refresh: Option<String>,
    /// Seconds since 1970.
    pub(super) expires_at: Option<u64>,
    pub(super) scopes: Vec<String>,
}

impl Grant {
    pub(super) fn of(tokens: ProviderTokens, asked_for: &[String], now: SystemTime) -> Self {
        // RFC 6749, 5.1: not said if it is what was asked for.
        let mut scopes = tokens.scopes.unwrap_or_else(|| asked_for.to_vec());
        let unsaid = asked_for.iter().filter(|it| UNSAID.contains(&it.as_str()));
        for scope in unsaid {
            if !scopes.contains(scope) {
                scopes.push(scope.clone());
            }
        }
        Self {
            access: tokens.access,
            refresh: tokens.refresh,
            expires_at: expiry(tokens.lives_for, now),
            scopes,
        }
    }

    /// The same after a refresh. What the answer leaves out stays.
    pub(super) fn refreshed(&self, tokens: ProviderTokens, now: SystemTime) -> Self {
        Self {
            access: tokens.access,
            refresh: tokens.refresh.or_else(|| self.refresh.clone()),
            expires_at: expiry(tokens.lives_for, now),
            // What a refresh says of them is no more than was granted.
            scopes: self.scopes.clone(),
        }
    }

    pub(super) fn has_all(&self, scopes: &[String]) -> bool {
        let has = |needed: &String| self.scopes.iter().any(|it| implies(it, needed));
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

/// Whether who has the one scope has the other. Microsoft writes its own host before scopes and
/// knows no case; GitHub leaves out scopes that another one includes.
fn implies(granted: &str, needed: &str) -> bool {
    const INCLUDED: [(&str, &[&str]); 2] = [
        (
            "repo",
            &[
                "public_repo",
                "repo:invite",
                "repo:status",
                "repo_deployment",
                "security_events",
            ],
        ),
        ("user", &["read:user", "user:email", "user:follow"]),
    ];
    let bare = |scope: &str| {
        let scope = scope.to_lowercase();
        let host = "https://graph.microsoft.com/";
        scope.strip_prefix(host).unwrap_or(&scope).to_owned()
    };
    let (granted, needed) = (bare(granted), bare(needed));
    let lower = |level: &str, levels: &[&str]| {
        let what = granted.strip_prefix(level);
        what.is_some_and(|what| levels.iter().any(|it| needed == format!("{it}{what}")))
    };
    let includes =
        |(one, others): &(&str, &[&str])| granted == *one && others.contains(&needed.as_str());
    granted == needed
        || INCLUDED.iter().any(includes)
        || lower("admin:", &["write:", "read:"])
        || lower("write:", &["read:"])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(scopes: Option<&[&str]>) -> ProviderTokens {
        ProviderTokens {
            access: "a".into(),
            refresh: None,
            lives_for: None,
            scopes: scopes.map(|all| all.iter().map(|&it| it.to_owned()).collect()),
        }
    }

    fn list(all: &[&str]) -> Vec<String> {
        all.iter().map(|&it| it.to_owned()).collect()
    }

    #[test]
    fn grants_stand_beside_each_other_until_one_has_all() {
        let now = SystemTime::now();
        let of = |scopes: &[&str]| Grant::of(given(Some(scopes)), &[], now);
        let mut grants = Grants::default();
        grants.add(of(&["a"]));
        grants.add(of(&["b"]));
        for scope in ["a", "b"] {
            assert!(grants.best(&list(&[scope]), now).is_some(), "{scope}");
        }
        assert!(grants.best(&list(&["a", "b"]), now).is_none());
        grants.add(of(&["a", "b"]));
        assert_eq!(grants.0.len(), 1);
        assert!(grants.remove("a") && !grants.remove("a"));
    }

    #[test]
    fn scopes_are_compared_as_providers_mean_them() {
        let now = SystemTime::now();
        for (asked, said, needed, has) in [
            (&["mail"][..], None, &["mail"][..], true),
            (&["mail", "before"], None, &["before"], true),
            (&["mail", "files"], Some(&["mail"][..]), &["files"], false),
            (
                &["openid", "mail"],
                Some(&["mail"]),
                &["openid", "mail"],
                true,
            ),
            // Never asked for, and so not granted.
            (&["mail"], Some(&["mail"]), &["openid"], false),
            (
                &["Mail.Read"],
                Some(&["https://graph.microsoft.com/Mail.Read"]),
                &["mail.read"],
                true,
            ),
            (
                &["public_repo", "repo"],
                Some(&["repo"]),
                &["public_repo"],
                true,
            ),
            (&["admin:org"], Some(&["admin:org"]), &["read:org"], true),
            (&["read:org"], Some(&["read:org"]), &["write:org"], false),
            (
                &["repository"],
                Some(&["repository"]),
                &["repo:status"],
                false,
            ),
        ] {
            let grant = Grant::of(given(said), &list(asked), now);
            assert_eq!(
                grant.has_all(&list(needed)),
                has,
                "{asked:?} {said:?} {needed:?}"
            );
        }
    }
}
