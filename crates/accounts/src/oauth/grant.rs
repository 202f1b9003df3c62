//! Users' grants, as they are stored.

use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use super::{
    exchange::ProviderTokens,
    records::{Records, Versioned, record_hash},
};
use crate::{StoreError, clock::since_epoch, store::Change};

/// Scopes that providers omit from the granted scopes, or spell differently there.
const OFTEN_OMITTED: [&str; 4] = ["email", "offline_access", "openid", "profile"];

/// The time for which a saved grant is kept. A refresh restarts it, and a use after half of it.
pub(crate) const GRANT_LIFE: Duration = Duration::from_hours(400 * 24);

/// All grants of a user at one provider: the user may have allowed different scopes at different
/// times, and a token covers only the scopes it was issued for.
#[derive(Clone, Default, Deserialize, Serialize)]
pub(crate) struct Grants(pub(super) Vec<Grant>);

impl Grants {
    /// Returns the grant that has all these scopes; if there are several, the one that expires
    /// last.
    pub(super) fn best(&self, scopes: &[String], now: SystemTime) -> Option<&Grant> {
        let sufficient = self.0.iter().filter(|grant| grant.has_all(scopes));
        sufficient.max_by_key(|grant| grant.left(now))
    }

    /// Returns the grant of the account that the user has signed in with.
    pub(crate) fn of_account(&self, subject: &str) -> Option<&Grant> {
        self.0
            .iter()
            .find(|grant| grant.subject.as_deref() == Some(subject))
    }

    /// Adds a grant, and removes those whose scopes it covers.
    pub(crate) fn add(&mut self, new: Grant) {
        let is_covered = |old: &Grant| {
            // Signing in goes on with the account that the user has signed in with.
            let is_other = old.subject.is_some() && old.subject != new.subject;
            new.has_all(&old.scopes) && !is_other
        };
        self.0.retain(|old| !is_covered(old));
        self.0.push(new);
    }

    /// Removes the grant with this access token. Returns true if there was one.
    pub(super) fn remove(&mut self, access: &str) -> bool {
        let count = self.0.len();
        self.0.retain(|grant| grant.access != access);
        self.0.len() < count
    }
}

#[derive(Clone, Deserialize, Serialize)]
pub(crate) struct Grant {
    pub(crate) access: String,
    pub(super) refresh: Option<String>,
    /// Seconds since 1970.
    pub(super) expires_at: Option<u64>,
    pub(super) scopes: Vec<String>,
    /// The account that the user has signed in with, if that has brought the grant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) subject: Option<String>,
}

impl Grant {
    pub(crate) fn new(tokens: ProviderTokens, requested: &[String], now: SystemTime) -> Self {
        // RFC 6749, 5.1: optional in the response if identical to the requested scopes.
        let mut scopes = tokens.scopes.unwrap_or_else(|| requested.to_vec());
        let omitted = requested
            .iter()
            .filter(|it| OFTEN_OMITTED.contains(&it.as_str()));
        for scope in omitted {
            if !scopes.contains(scope) {
                scopes.push(scope.clone());
            }
        }
        Self {
            access: tokens.access,
            refresh: tokens.refresh,
            expires_at: expiry(tokens.expires_in, now),
            scopes,
            subject: None,
        }
    }

    /// Returns the grant after a refresh. If the response has no refresh token, the old one is
    /// kept.
    pub(super) fn refreshed(&self, tokens: ProviderTokens, now: SystemTime) -> Self {
        Self {
            access: tokens.access,
            refresh: tokens.refresh.or_else(|| self.refresh.clone()),
            expires_at: expiry(tokens.expires_in, now),
            // RFC 6749, 6: a refresh adds no scopes.
            scopes: self.scopes.clone(),
            subject: self.subject.clone(),
        }
    }

    pub(super) fn has_all(&self, scopes: &[String]) -> bool {
        let has = |needed: &String| self.scopes.iter().any(|it| implies(it, needed));
        scopes.iter().all(has)
    }

    pub(crate) fn can_be_refreshed(&self) -> bool {
        self.refresh.is_some()
    }

    /// Returns the time until the access token expires.
    pub(super) fn left(&self, now: SystemTime) -> Duration {
        let Some(expires_at) = self.expires_at else {
            return Duration::MAX;
        };
        Duration::from_secs(expires_at).saturating_sub(since_epoch(now))
    }
}

/// Returns the id of the record with a user's grants at a provider.
pub(crate) fn grant_record_id(caller: &str, user: &str, provider: &str) -> String {
    let hash = record_hash("grant", caller, user, provider, &[]);
    format!("grant#{hash}")
}

impl Records {
    /// Returns the grant that `find` finds in a record, which lasts longer from then on.
    pub(crate) async fn current_grant(
        &self,
        id: &str,
        find: impl FnOnce(&Grants) -> Option<&Grant>,
    ) -> Result<Option<Grant>, StoreError> {
        let versioned: Versioned<Grants> = self.load(id).await?;
        let Some(grants) = &versioned.value else {
            return Ok(None);
        };
        let Some(grant) = find(grants) else {
            return Ok(None);
        };
        if versioned.has_old_key || versioned.left < GRANT_LIFE / 2 {
            // Encrypts the grants with the newest key and extends their life. If another instance
            // was first, it wrote the same.
            self.save(id, grants, GRANT_LIFE, versioned.over).await?;
        }
        Ok(Some(grant.clone()))
    }

    /// Adds a grant to those in a record.
    pub(crate) async fn add_grant(&self, id: &str, grant: &Grant) -> Result<(), StoreError> {
        let change = |versioned: Versioned<Grants>| {
            let mut grants = versioned.value.unwrap_or_default();
            grants.add(grant.clone());
            Change::Write(grants, ())
        };
        self.update(id, GRANT_LIFE, change).await
    }

    /// Deletes the grant with this access token. Returns true if there was one.
    pub(super) async fn remove_grant(&self, id: &str, access: &str) -> Result<bool, StoreError> {
        let change = |versioned: Versioned<Grants>| {
            let mut grants = versioned.value.unwrap_or_default();
            if grants.remove(access) {
                Change::Write(grants, true)
            } else {
                Change::Leave(false)
            }
        };
        self.update(id, GRANT_LIFE, change).await
    }
}

fn expiry(expires_in: Option<Duration>, now: SystemTime) -> Option<u64> {
    Some(since_epoch(now).saturating_add(expires_in?).as_secs())
}

/// Returns true if a granted scope includes a needed one. Microsoft prefixes scopes with its host
/// and ignores case; GitHub omits scopes that another one includes.
fn implies(granted: &str, needed: &str) -> bool {
    let bare = |scope: &str| {
        let scope = scope.to_ascii_lowercase();
        let host = "https://graph.microsoft.com/";
        scope.strip_prefix(host).unwrap_or(&scope).to_owned()
    };
    let (granted, needed) = (bare(granted), bare(needed));
    let included: &[&str] = match &*granted {
        "repo" => &[
            "public_repo",
            "repo:invite",
            "repo:status",
            "repo_deployment",
            "security_events",
        ],
        "user" => &["read:user", "user:email", "user:follow"],
        _ => &[],
    };
    let lower = |level: &str, levels: &[&str]| {
        let resource = granted.strip_prefix(level);
        resource.is_some_and(|resource| levels.iter().any(|it| needed == format!("{it}{resource}")))
    };
    granted == needed
        || included.contains(&&*needed)
        || lower("admin:", &["write:", "read:"])
        || lower("write:", &["read:"])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(all: &str) -> Vec<String> {
        all.split(' ').map(str::to_owned).collect()
    }

    /// Returns the grant for a request, whose response lists these scopes, if any.
    fn granted(requested: &str, returned: Option<&str>) -> Grant {
        let tokens = ProviderTokens {
            access: "a".into(),
            refresh: None,
            id_token: None,
            expires_in: None,
            scopes: returned.map(list),
        };
        Grant::new(tokens, &list(requested), SystemTime::now())
    }

    #[test]
    fn grants_are_kept_until_one_covers_their_scopes() {
        let mut grants = Grants::default();
        let has = |grants: &Grants, scopes| grants.best(&list(scopes), SystemTime::now()).is_some();
        grants.add(granted("a", None));
        grants.add(granted("b", None));
        assert!(has(&grants, "a") && has(&grants, "b") && !has(&grants, "a b"));
        grants.add(granted("a b", None));
        assert_eq!(grants.0.len(), 1);
        assert!(grants.remove("a") && !grants.remove("a"));
    }

    #[test]
    fn the_grant_of_the_account_that_a_user_has_signed_in_with_stays() {
        let grant = |access: &str, subject: Option<&str>| Grant {
            access: access.into(),
            subject: subject.map(str::to_owned),
            ..granted("a", None)
        };
        let mut grants = Grants::default();
        grants.add(grant("old", Some("alice")));
        grants.add(grant("new", Some("alice")));
        // A tool has asked for more, and the user has chosen another account.
        grants.add(grant("other", None));
        assert_eq!(grants.0.len(), 2);
        assert_eq!(grants.of_account("alice").unwrap().access, "new");
        assert!(grants.of_account("bob").is_none());
    }

    /// The scopes that were requested, returned and are needed, and whether the grant has them.
    const SCOPES: &str = "
mail | - | mail | yes
mail before | - | before | yes
mail files | mail | files | no
openid mail | mail | openid mail | yes
mail | mail | openid | no
Mail.Read | https://graph.microsoft.com/Mail.Read | mail.read | yes
public_repo repo | repo | public_repo | yes
admin:org | admin:org | read:org | yes
read:org | read:org | write:org | no
repository | repository | repo:status | no
";

    #[test]
    fn scopes_are_compared_by_each_providers_rules() {
        for row in SCOPES.lines().filter(|row| !row.is_empty()) {
            let cells: Vec<_> = row.split(" | ").collect();
            let [requested, returned, needed, has] = cells[..] else {
                panic!("{row}");
            };
            let grant = granted(requested, Some(returned).filter(|it| *it != "-"));
            assert_eq!(grant.has_all(&list(needed)), has == "yes", "{row}");
        }
    }
}
