//! The parameters of requests: RFC 6749, 3.1 and 3.2.

use std::collections::BTreeMap;

/// The parameters of a query or a form. None occurs twice.
pub(crate) struct Parameters(BTreeMap<String, String>);

impl Parameters {
    /// Parses a query or the body of a form. `None` if a parameter occurs twice (RFC 6749, 3.1).
    pub(crate) fn parse(text: &[u8]) -> Option<Self> {
        let mut parameters = BTreeMap::new();
        for (name, value) in form_urlencoded::parse(text) {
            if parameters
                .insert(name.into_owned(), value.into_owned())
                .is_some()
            {
                return None;
            }
        }
        Some(Self(parameters))
    }

    /// Returns the value of a parameter. An empty one counts as absent.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0
            .get(name)
            .map(String::as_str)
            .filter(|it| !it.is_empty())
    }
}
