//! Sign-in, without the Cargo feature `sign-in`: there is none.

/// Uninhabited: there are no settings.
#[derive(Clone, Debug)]
pub enum SignIn {}

impl SignIn {
    /// Returns the id of the provider at which users sign in.
    pub fn provider_id(&self) -> &str {
        match *self {}
    }
}
