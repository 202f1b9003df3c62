//! Names that every API accepts, for tools and for parameters.
//!
//! One name that an API does not accept makes it reject the whole list.

use std::fmt::Write;

use sha2::{Digest, Sha256};

use super::ModelApi;

/// The longest name of a tool and of a parameter. Anthropic's API accepts tools with 128 characters,
/// but not in every place: "`tool_reference.tool_name`: String should have at most 64 characters".
const LONGEST: usize = 64;
/// The number of hexadecimal digits that make a changed name unique.
const DIGITS: usize = 8;

/// The rules of an API for names.
#[derive(Clone, Copy)]
pub(super) struct NameRule {
    /// The characters that are allowed besides letters and digits.
    others: &'static [u8],
    /// True if the first character must be a letter or an underscore.
    has_start: bool,
}

impl NameRule {
    pub(super) fn of_tools(api: ModelApi) -> Self {
        Self {
            others: b"_-",
            has_start: api == ModelApi::Gemini,
        }
    }

    /// Returns the rules for the names of parameters; `None` if the API takes all names.
    pub(super) fn of_parameters(api: ModelApi) -> Option<Self> {
        match api {
            ModelApi::OpenAi { .. } | ModelApi::OpenAiResponses { .. } | ModelApi::AgentCore => {
                None
            }
            // "Property keys should match pattern '^[a-zA-Z0-9_.-]{1,64}$'"; Bedrock has the same
            // models.
            ModelApi::Anthropic | ModelApi::Bedrock => Some(Self {
                others: b"_.-",
                has_start: false,
            }),
            // "Parameter names must start with a letter or an underscore and must only contain
            // chars a-z, A-Z, 0-9, or underscores with a maximum length of 64."
            ModelApi::Gemini => Some(Self {
                others: b"_",
                has_start: true,
            }),
        }
    }

    /// Returns the name under which a tool is listed, which is not yet `taken`: its own if the API
    /// accepts it, otherwise one with a hash of its id.
    pub(super) fn tool(self, name: &str, id: &str, is_taken: impl Fn(&str) -> bool) -> String {
        if self.accepts(name) && !is_taken(name) {
            return name.to_owned();
        }
        // A second hash is needed only if a tool has the name of another's first one.
        let mut seed = id.to_owned();
        loop {
            let candidate = self.hashed(name, &seed);
            if !is_taken(&candidate) {
                return candidate;
            }
            seed.push('+');
        }
    }

    /// Returns the name under which a parameter is listed.
    pub(super) fn parameter(self, name: &str) -> String {
        if self.accepts(name) {
            name.to_owned()
        } else {
            self.hashed(name, name)
        }
    }

    fn accepts(self, name: &str) -> bool {
        (1..=LONGEST).contains(&name.len())
            && (!self.has_start || starts_with_letter(name))
            && name.chars().all(|char| self.allows(char))
    }

    fn allows(self, char: char) -> bool {
        char.is_ascii_alphanumeric() || u8::try_from(char).is_ok_and(|it| self.others.contains(&it))
    }

    fn hashed(self, name: &str, seed: &str) -> String {
        let replaced = name
            .chars()
            .map(|char| if self.allows(char) { char } else { '_' });
        let mut hashed = String::new();
        if self.has_start && !starts_with_letter(name) {
            hashed.push('_');
        }
        hashed.extend(replaced.take(LONGEST - DIGITS - 1 - hashed.len()));
        hashed.push('_');
        for byte in &Sha256::digest(seed)[..DIGITS / 2] {
            // Writing to a string does not fail.
            let _ = write!(hashed, "{byte:02x}");
        }
        hashed
    }
}

fn starts_with_letter(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const APIS: [ModelApi; 5] = [
        ModelApi::OpenAi { strict: true },
        ModelApi::OpenAiResponses { strict: false },
        ModelApi::Anthropic,
        ModelApi::Gemini,
        ModelApi::Bedrock,
    ];

    #[test]
    fn names_that_an_api_accepts_are_unchanged() {
        for api in APIS {
            let rule = NameRule::of_tools(api);
            for name in ["Calculator_Add", "a-b", "_x", &"a".repeat(64)] {
                assert_eq!(rule.tool(name, "id", |_| false), name);
            }
            let is_gemini = api == ModelApi::Gemini;
            assert_eq!(rule.tool("1-a", "id", |_| false) == "1-a", !is_gemini);
            if let Some(rule) = NameRule::of_parameters(api) {
                assert_eq!(rule.parameter("query_2"), "query_2");
                assert_eq!(rule.parameter("user-id.x") == "user-id.x", !is_gemini);
            }
        }
    }

    #[test]
    fn other_names_get_a_hash_of_the_id() {
        let rule = NameRule::of_tools(ModelApi::Anthropic);
        assert_eq!(rule.tool("a.b", "a.b", |_| false), "a_b_2e7336dc");
        assert_ne!(
            rule.tool("a.b", "1", |_| false),
            rule.tool("a.b", "2", |_| false)
        );
        let taken = rule.tool("a", "1", |name| name == "a");
        assert!(taken.starts_with("a_") && taken.len() == 10, "{taken}");
        let other = rule.tool("a", "1", |name| name == "a" || name == taken);
        assert_ne!(other, taken);
        let rule = NameRule::of_parameters(ModelApi::Gemini).unwrap();
        assert!(rule.parameter("$filter").starts_with("__filter_"));
    }

    proptest! {
        #[test]
        fn every_name_becomes_valid(name in ".{0,80}", is_taken in any::<bool>()) {
            for api in APIS {
                let rule = NameRule::of_tools(api);
                let listed = rule.tool(&name, &name, |other| is_taken && other == name);
                prop_assert!(rule.accepts(&listed), "{listed}");
                prop_assert!(!is_taken || listed != name);
                let rule = NameRule::of_parameters(api);
                prop_assert!(rule.is_none_or(|rule| rule.accepts(&rule.parameter(&name))));
            }
        }
    }
}
