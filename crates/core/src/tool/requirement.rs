//! Requirements: the secrets, tokens and user that a tool needs besides its input.
//!
//! They are declared with the tool, published in its definition, and enforced before it runs, so
//! that a tool never finds out halfway that its key is missing.

use serde::{Deserialize, Deserializer, Serialize};

/// The requirements of a call besides `input`: OXP 1.0, Tool Definition, `requirements`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Requirements {
    /// One entry for each provider whose token the tool uses on the user's behalf.
    #[serde(
        deserialize_with = "null_is_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub authorization: Vec<AuthorizationRequirement>,
    /// The secrets the tool reads.
    #[serde(
        deserialize_with = "null_is_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub secrets: Vec<SecretRequirement>,
    /// `true` if the tool must know which user it acts for.
    #[serde(
        deserialize_with = "null_is_default",
        skip_serializing_if = "std::ops::Not::not"
    )]
    pub user_id: bool,
}

/// A provider whose token a tool needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct AuthorizationRequirement {
    /// The provider's id, such as `google`.
    pub id: String,
    /// The scopes required of the token.
    #[serde(default, deserialize_with = "null_is_default")]
    pub oauth2: OAuth2Requirement,
    /// The URL at which the provider issues the token, if the tool knows it.
    #[serde(skip)]
    pub token_url: Option<String>,
}

/// The scopes required of an OAuth 2.0 token.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct OAuth2Requirement {
    /// The scopes the token must have been granted.
    #[serde(default, deserialize_with = "null_is_default")]
    pub scopes: Vec<String>,
}

/// A secret that a tool needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SecretRequirement {
    /// The secret's id, such as `TWILIO_API_KEY`.
    pub id: String,
}

impl Requirements {
    /// Returns true if a call needs nothing besides its input.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the ids that are empty or occur twice in their list.
    pub(crate) fn invalid_ids(&self) -> Vec<&str> {
        let providers: Vec<_> = self.authorization.iter().map(|it| it.id.as_str()).collect();
        let secrets: Vec<_> = self.secrets.iter().map(|it| it.id.as_str()).collect();
        let mut invalid = Vec::new();
        for ids in [providers, secrets] {
            for (index, id) in ids.iter().enumerate() {
                if id.is_empty() || ids[..index].contains(id) {
                    invalid.push(*id);
                }
            }
        }
        invalid
    }
}

/// Reads `null` as the default: some servers write it for absent values.
pub fn null_is_default<'de, T, D>(deserializer: D) -> Result<T, D::Error>
where
    T: Default + Deserialize<'de>,
    D: Deserializer<'de>,
{
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}
