//! The claims of a JWT.

use serde::Deserialize;

/// The claims of a token whose signature is valid.
#[derive(Deserialize)]
pub(super) struct VerifiedClaims {
    pub(super) exp: Option<f64>,
    pub(super) nbf: Option<f64>,
    pub(super) aud: Option<Texts>,
    pub(super) sub: Option<String>,
    scope: Option<Texts>,
    scp: Option<Texts>,
}

impl VerifiedClaims {
    pub(super) fn scopes(&self) -> Vec<String> {
        let texts = [&self.scope, &self.scp].into_iter().flatten();
        let texts = texts.flat_map(Texts::all);
        let scopes = texts.flat_map(|text| text.split(' '));
        let scopes = scopes.filter(|scope| !scope.is_empty());
        scopes.map(str::to_owned).collect()
    }
}

/// A text, or a list of texts.
#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum Texts {
    One(String),
    Several(Vec<String>),
}

impl Texts {
    pub(super) fn all(&self) -> &[String] {
        match self {
            Self::One(one) => std::slice::from_ref(one),
            Self::Several(all) => all,
        }
    }
}
