//! Resources and prompts, which run like tools: MCP 2026-07-28, Resources, Prompts.

use std::{borrow::Cow, collections::BTreeSet};

use percent_encoding::percent_decode_str;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    Tool,
    content::{Content, EncodedContent, is_uri},
    handler::{Handler, IntoFailure, ToolInput, ToolOutput},
    output::{Output, to_value},
};
use crate::{Failure, json::JsonObject};

/// The maximum length of a URI that is compared with a template, in bytes.
const LONGEST_URI: usize = 2048;

/// A resource: data that an MCP client reads by its URI.
///
/// Its name is that of a tool in the toolkit `Resources`: with the name `readme`, the log and the
/// rules of `TOOLS_ALLOW` name it `Resources.readme`.
#[must_use]
pub struct Resource {
    pub(super) tool: Tool,
    pub(super) uri: Cow<'static, str>,
}

impl Resource {
    /// Creates a resource with a text, of the media type `text/plain`. The name consists of letters,
    /// digits and underscores.
    ///
    /// ```
    /// # use lambda_tools_core as lambda_tools;
    /// use lambda_tools::{Resource, Toolkit};
    ///
    /// let terms = Resource::text("shop://terms", "terms", "Returns within 30 days.");
    /// let toolkit = Toolkit::new([])?.resources([terms])?;
    /// # Ok::<(), lambda_tools::BuildError>(())
    /// ```
    #[track_caller]
    pub fn text(
        uri: impl Into<Cow<'static, str>>,
        name: &str,
        text: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self::fixed(uri.into(), name, &Content::text(text.into()))
    }

    /// Creates a resource with bytes of a media type.
    #[track_caller]
    pub fn bytes(
        uri: impl Into<Cow<'static, str>>,
        name: &str,
        media_type: impl Into<Cow<'static, str>>,
        bytes: impl Into<Vec<u8>>,
    ) -> Self {
        Self::fixed(uri.into(), name, &Content::bytes(media_type, bytes))
    }

    #[track_caller]
    fn fixed(uri: Cow<'static, str>, name: &str, content: &Content) -> Self {
        let value = to_value(content).map_err(|error| error.to_string());
        let run = move |_: Value| {
            let value = value.clone().map_err(Failure::new);
            async move { value }
        };
        let (id, object) = (id_of("Resources", name), json!({"type": "object"}));
        let tool = Tool::dynamic(id, name, object, json!({}), run);
        Self { tool, uri }
    }

    /// Creates a resource that a function returns: as a text, [`Content`], a list of it, or `None` if
    /// there is none with this URI.
    ///
    /// `uri` may be a template with variables in braces (RFC 6570, level 1), which are the parameters
    /// of the function: strings, decoded. A variable has no slash. The doc comment of the input type
    /// is the description.
    ///
    /// ```
    /// # use lambda_tools_core as lambda_tools;
    /// use lambda_tools::{Failure, Resource, Toolkit};
    ///
    /// /// An order of the shop.
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct Order {
    ///     /// The number of the order.
    ///     number: String,
    /// }
    ///
    /// async fn order(input: Order) -> Result<Option<String>, Failure> {
    ///     Ok((input.number == "7").then(|| "Two lamps.".to_owned()))
    /// }
    ///
    /// let orders = Resource::with("shop://orders/{number}", "order", order);
    /// let toolkit = Toolkit::new([])?.resources([orders])?;
    /// # Ok::<(), lambda_tools::BuildError>(())
    /// ```
    #[track_caller]
    pub fn with<H, A: 'static>(uri: impl Into<Cow<'static, str>>, name: &str, handler: H) -> Self
    where
        H: Handler<A>,
        H::In: ToolInput,
        H::Out: ToolOutput,
        H::Error: IntoFailure,
        H::Future: Send + 'static,
    {
        Self {
            tool: Tool::new(id_of("Resources", name), handler),
            uri: uri.into(),
        }
    }

    /// Declares what a tool can declare, too: a description, a title, secrets, a user, scopes, who may
    /// read it, or a time limit.
    pub fn declare(mut self, declare: impl FnOnce(Tool) -> Tool) -> Self {
        self.tool = declare(self.tool);
        self
    }
}

/// A prompt: messages that a user of an MCP client chooses to begin with.
///
/// ```
/// # use lambda_tools_core as lambda_tools;
/// use lambda_tools::{Failure, Prompt, Toolkit};
///
/// /// Asks for a review of code.
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Review {
///     /// The code.
///     code: String,
/// }
///
/// async fn review(input: Review) -> Result<String, Failure> {
///     Ok(format!("Review this code:\n{}", input.code))
/// }
///
/// let toolkit = Toolkit::new([])?.prompts([Prompt::new("review", review)])?;
/// # Ok::<(), lambda_tools::BuildError>(())
/// ```
#[must_use]
pub struct Prompt(pub(super) Tool);

impl Prompt {
    /// Creates a prompt that a function returns: as the text of one message of the user, or as a list
    /// of [`Message`]. Its arguments are strings and enums; they are described like the parameters of
    /// a tool. The name consists of letters, digits and underscores; the log and the rules of
    /// `TOOLS_ALLOW` name the prompt `Prompts.NAME`.
    #[track_caller]
    pub fn new<H, A: 'static>(name: &str, handler: H) -> Self
    where
        H: Handler<A>,
        H::In: ToolInput,
        H::Out: ToolOutput,
        H::Error: IntoFailure,
        H::Future: Send + 'static,
    {
        Self(Tool::new(id_of("Prompts", name), handler))
    }

    /// Declares what a tool can declare, too: a title, secrets, a user, scopes, who may use it, or a
    /// time limit.
    pub fn declare(self, declare: impl FnOnce(Tool) -> Tool) -> Self {
        Self(declare(self.0))
    }
}

/// A message of a prompt.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Message {
    role: &'static str,
    content: Content,
}

impl Message {
    /// Creates a message of the user.
    pub fn user(content: impl Into<Content>) -> Self {
        let content = content.into();
        Self {
            role: "user",
            content,
        }
    }

    /// Creates a message of the model.
    pub fn assistant(content: impl Into<Content>) -> Self {
        let content = content.into();
        Self {
            role: "assistant",
            content,
        }
    }
}

/// The same as [`Content::text`].
impl From<&str> for Content {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

fn id_of(kind: &str, name: &str) -> String {
    format!("{kind}.{name}@1.0.0")
}

/// Returns what a function has returned: contents, each with the role of its message. A text is one of
/// the user.
pub fn messages_in(output: &Output) -> Vec<(String, EncodedContent)> {
    #[derive(Deserialize)]
    struct RoleAndContent {
        role: String,
        content: EncodedContent,
    }
    let value = serde_json::to_value(output).unwrap_or_default();
    if let Some(text) = value.as_str() {
        return vec![("user".to_owned(), Content::text(text).0)];
    }
    if let Some(contents) = output.content() {
        return contents
            .into_iter()
            .map(|it| ("user".to_owned(), it))
            .collect();
    }
    let messages: Vec<RoleAndContent> = serde_json::from_value(value).unwrap_or_default();
    messages
        .into_iter()
        .map(|it| (it.role, it.content))
        .collect()
}

/// Returns the variables of a template; `None` if it is none: adjacent variables have no end.
pub(super) fn variables_in(template: &str) -> Option<BTreeSet<&str>> {
    let parts = template.split('{').skip(1);
    let names: BTreeSet<_> = parts
        .map(|it| it.split('}').next().unwrap_or_default())
        .collect();
    let is_name = |it: &&str| {
        it.bytes()
            .all(|it| it.is_ascii_alphanumeric() || it == b'_')
    };
    let bind = |uri: String, name: &&str| uri.replace(&format!("{{{name}}}"), "x");
    let uri = names.iter().fold(template.replace("}{", " "), bind);
    let is_unique = names.len() == template.matches('{').count();
    (is_uri(&uri) && is_unique && names.iter().all(is_name) && !names.contains("")).then_some(names)
}

/// Returns the values of a template's variables, if the template has this URI: RFC 6570, 3.2.2.
pub(super) fn values_in(template: &str, uri: &str) -> Option<JsonObject> {
    let mut values = JsonObject::new();
    (uri.len() <= LONGEST_URI && bind(template, uri, &mut values)).then_some(values)
}

/// Each variable ends where the text after it begins for the last time, so that no URI takes long.
fn bind(template: &str, uri: &str, values: &mut JsonObject) -> bool {
    let Some((literal, rest)) = template.split_once('{') else {
        return template == uri;
    };
    let (Some(uri), Some((name, rest))) = (uri.strip_prefix(literal), rest.split_once('}')) else {
        return false;
    };
    let longest = uri.find(['/', '?', '#']).unwrap_or(uri.len());
    let next = rest.split('{').next().unwrap_or_default();
    let end = match next {
        "" => Some(longest),
        next => uri.get(..longest + next.len()).unwrap_or(uri).rfind(next),
    };
    let Some((value, after)) = end.and_then(|it| uri.split_at_checked(it.min(longest))) else {
        return false;
    };
    // A function that takes a part of a path need not expect another one.
    let value = percent_decode_str(value).decode_utf8().ok();
    let Some(value) = value.filter(|it| !it.is_empty() && !it.contains('/')) else {
        return false;
    };
    values.insert(name.to_owned(), value.into());
    bind(rest, after, values)
}

/// Returns the texts that a schema allows; none if it allows any text, or what is no text.
pub fn choices_in(schema: &Value) -> Vec<&str> {
    let lists = ["enum", "oneOf", "anyOf"];
    let lists = lists.iter().filter_map(|it| schema[it].as_array());
    let of_list = lists.flatten().flat_map(|it| match it.as_str() {
        Some(text) => vec![text],
        None => choices_in(it),
    });
    schema["const"]
        .as_str()
        .into_iter()
        .chain(of_list)
        .collect()
}

/// Returns true for the schema of a text, or of texts to choose from.
pub(super) fn is_text(schema: &Value) -> bool {
    let is_type = |it: &Value| it == "string" || it == "null";
    match &schema["type"] {
        Value::Null => !choices_in(schema).is_empty(),
        Value::Array(types) => types.iter().all(is_type),
        one => is_type(one),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_bind_parts_of_a_path() {
        for (template, uri, expected) in [
            ("a://x", "a://x", json!({})),
            ("a://x", "a://x/", Value::Null),
            ("a://{id}", "a://7", json!({"id": "7"})),
            ("a://{id}", "a://", Value::Null),
            ("a://{id}", "a://7/8", Value::Null),
            ("a://{id}", "a://7?x=1", Value::Null),
            ("a://{id}/data", "a://7/data", json!({"id": "7"})),
            ("a://{x}/{y}", "a://1/2", json!({"x": "1", "y": "2"})),
            ("a://{x}.{y}", "a://1.2.3", json!({"x": "1.2", "y": "3"})),
            ("a://{x}", "a://%C3%A9%20b", json!({"x": "é b"})),
            ("a://{x}", "a://..%2Fb", Value::Null),
            ("a://{x}.txt", "a://b.txt", json!({"x": "b"})),
            ("a://{x}.txt", "a://b.txt.txt/c", Value::Null),
            ("a://{x}é{y}", "a://1é2", json!({"x": "1", "y": "2"})),
            ("a://{x}", "a://é", json!({"x": "é"})),
            ("a://{x}", "a://%FF", Value::Null),
        ] {
            let bound = values_in(template, uri).map_or(Value::Null, Value::Object);
            assert_eq!(bound, expected, "{template} {uri}");
        }
        assert!(values_in("a://{x}", &format!("a://{}", "x".repeat(3000))).is_none());
    }

    #[test]
    fn a_template_is_a_uri_with_variables() {
        for (template, expected) in [
            ("a://x", Some("")),
            ("a://{x}/{y_2}", Some("x y_2")),
            ("x", None),
            ("a://{x}{y}", None),
            ("a://{x}/{x}", None),
            ("a://{}", None),
            ("a://{+x}", None),
            ("a://{x", None),
            ("a://x}", None),
            ("a://{x}}", None),
        ] {
            let found = variables_in(template);
            let expected = expected.map(|it| it.split_whitespace().collect());
            assert_eq!(found, expected, "{template}");
        }
    }
}
