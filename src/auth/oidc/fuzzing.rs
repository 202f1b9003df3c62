//! Verification of access tokens with given keys, for the fuzz targets.

use std::{sync::Arc, time::SystemTime};

use super::{ClaimRules, KeySet, UnverifiedToken, accepted};
use crate::{AccessToken, auth::jwt::install_cryptography};

/// An issuer's keys, and the rules for its tokens.
pub(crate) struct IssuerKeys {
    keys: KeySet,
    rules: ClaimRules,
}

impl IssuerKeys {
    /// Reads a JSON Web Key Set.
    pub(crate) fn parse(
        issuer: &str,
        document: &[u8],
        audiences: &[String],
        client_ids: &[String],
    ) -> Option<Self> {
        install_cryptography();
        let keys = KeySet::parse(Arc::from(issuer), Arc::from(issuer), document).ok()?;
        let rules = ClaimRules {
            audiences: audiences.to_vec(),
            client_ids: client_ids.to_vec(),
            ..ClaimRules::default()
        };
        Some(Self { keys, rules })
    }

    /// Returns the facts in a token that is accepted.
    pub(crate) fn accept(
        &self,
        token: &[u8],
        now: SystemTime,
        server_url: Option<&str>,
    ) -> Result<AccessToken, &'static str> {
        let token = UnverifiedToken::parse(token)?;
        accepted(&token, &self.keys, &self.rules, now, server_url)
    }
}
