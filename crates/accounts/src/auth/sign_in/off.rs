//! Sign-in, without the Cargo feature `sign-in`: there is none.

/// Uninhabited: there are no settings.
#[derive(Clone, Debug)]
pub enum SignIn {}

impl SignIn {
    pub fn provider_id(&self) -> &str {
        match *self {}
    }
}
