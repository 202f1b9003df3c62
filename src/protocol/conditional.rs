//! Conditional requests: RFC 9110, section 13.1.2.

use http::{HeaderMap, header::IF_NONE_MATCH};

/// The entity tags of the responses that a client has.
pub(super) enum IfNoneMatch<'a> {
    /// `*`: any response.
    Any,
    /// The tags, without `W/`.
    Tags(Vec<&'a str>),
}

impl<'a> IfNoneMatch<'a> {
    /// `None` if the request is not conditional.
    pub(super) fn of(headers: &'a HeaderMap) -> Option<Self> {
        let mut values = headers.get_all(IF_NONE_MATCH).iter().peekable();
        values.peek()?;
        let mut tags = Vec::new();
        for value in values.filter_map(|value| value.to_str().ok()) {
            if value.trim() == "*" {
                return Some(Self::Any);
            }
            tags.extend(tags_in(value));
        }
        Some(Self::Tags(tags))
    }
}

/// The tags of a list, up to its first mistake: a response that was not asked for is only longer
/// than it had to be.
///
/// Section 8.8.3.2: the comparison is weak, so `W/` has no meaning. A tag may contain commas.
fn tags_in(list: &str) -> Vec<&str> {
    let mut tags = Vec::new();
    let mut rest = list;
    loop {
        rest = rest.trim_start_matches([' ', '\t', ',']);
        rest = rest.strip_prefix("W/").unwrap_or(rest);
        let end = rest.strip_prefix('"').and_then(|opened| opened.find('"'));
        let Some(end) = end else {
            return tags;
        };
        // With both quotes.
        let (tag, after) = rest.split_at(end + 2);
        tags.push(tag);
        rest = after;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tags(value: &str) -> Vec<String> {
        let headers = HeaderMap::from_iter([(IF_NONE_MATCH, value.parse().unwrap())]);
        match IfNoneMatch::of(&headers) {
            Some(IfNoneMatch::Tags(tags)) => tags.into_iter().map(str::to_owned).collect(),
            Some(IfNoneMatch::Any) => vec!["*".to_owned()],
            None => panic!("there is a header"),
        }
    }

    #[test]
    fn a_list_of_tags_is_read_up_to_its_first_mistake() {
        for (value, expected) in [
            (r#""a""#, vec![r#""a""#]),
            (
                r#"W/"a", "b,c" ,,"d""#,
                vec![r#""a""#, r#""b,c""#, r#""d""#],
            ),
            (r#""""#, vec![r#""""#]),
            (" * ", vec!["*"]),
            (r#""a", b, "c""#, vec![r#""a""#]),
            (r#""a"#, vec![]),
            (r#"w/"a""#, vec![]),
            ("", vec![]),
        ] {
            assert_eq!(tags(value), expected, "{value}");
        }
        assert!(IfNoneMatch::of(&HeaderMap::new()).is_none());
    }
}
