//! Determines the kind of an event from its first fields.
//!
//! An event is then parsed once, as the right type; trying one type after another would parse a
//! large event several times and lose the reason why none matches.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{Error as _, IgnoredAny, MapAccess, Visitor},
};

use crate::protocol::DirectCallFormat;

/// The supported kinds of events.
#[derive(Clone, Copy, Debug)]
pub(crate) enum EventKind {
    /// API Gateway REST API, and HTTP API with payload format 1.0.
    Rest,
    /// API Gateway HTTP API with payload format 2.0, and Function URL.
    Http,
    /// Application Load Balancer.
    Alb,
    /// A call by itself, which has the format of the server's own calls.
    Direct,
}

/// Returns the kind of an event.
pub(crate) fn kind_of(json: &str) -> Result<EventKind, EventError> {
    let mut visitor = EventKindVisitor::default();
    let result = serde_json::Deserializer::from_str(json).deserialize_map(&mut visitor);
    match (visitor.kind, result) {
        (Some(kind), _) => Ok(kind),
        (None, Ok(())) => Err(EventError::NotHttp(visitor.fields)),
        (None, Err(error)) => Err(EventError::invalid(&error)),
    }
}

/// A reader of an event's first fields, which stops when they determine its kind.
#[derive(Default)]
struct EventKindVisitor {
    kind: Option<EventKind>,
    fields: Vec<String>,
}

#[derive(Deserialize)]
struct ContextKeys {
    elb: Option<IgnoredAny>,
    http: Option<IgnoredAny>,
}

impl<'de> Visitor<'de> for &mut EventKindVisitor {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an event object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            self.kind = match key.as_str() {
                "rawPath" | "rawQueryString" | "routeKey" => Some(EventKind::Http),
                // Both of API Gateway's formats have a version, and emulators add null fields of
                // one format to events of the other.
                "version" => match map.next_value::<Option<String>>()?.as_deref() {
                    Some("2.0") => Some(EventKind::Http),
                    Some("1.0") => Some(EventKind::Rest),
                    _ => None,
                },
                // Several services' events have a field `request`, but none has these.
                "tool_id" => Some(EventKind::Direct),
                "$schema" => match map.next_value::<Option<String>>()?.as_deref() {
                    Some(schema) if DirectCallFormat::has_schema(schema) => Some(EventKind::Direct),
                    _ => None,
                },
                "resource" => map
                    .next_value::<Option<IgnoredAny>>()?
                    .map(|_| EventKind::Rest),
                "requestContext" => match map.next_value::<ContextKeys>()? {
                    ContextKeys { elb: Some(_), .. } => Some(EventKind::Alb),
                    ContextKeys { http: Some(_), .. } => Some(EventKind::Http),
                    ContextKeys { .. } => Some(EventKind::Rest),
                },
                _ => {
                    map.next_value::<IgnoredAny>()?;
                    None
                }
            };
            if self.kind.is_some() {
                return Err(A::Error::custom("kind determined"));
            }
            if self.fields.len() < 8 {
                self.fields.push(key.chars().take(40).collect());
            }
        }
        Ok(())
    }
}

/// The reason why an event is not handled.
#[derive(Debug)]
pub(crate) enum EventError {
    /// The event is the arguments of a model.
    AgentCore,
    /// The event is from another service; these are the names of its first fields.
    NotHttp(Vec<String>),
    /// The event is of a supported kind, but is invalid.
    Invalid(String),
}

impl EventError {
    /// Keeps serde's message only if it names a missing field. Other messages quote values, and an
    /// event's values must not be logged.
    pub(crate) fn invalid(error: &serde_json::Error) -> Self {
        let text = error.to_string();
        if text.starts_with("missing field") {
            return Self::Invalid(text);
        }
        let (line, column) = (error.line(), error.column());
        Self::Invalid(format!("it is not valid at line {line} column {column}"))
    }
}

impl fmt::Display for EventError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const EXPECTED: &str = "This function answers HTTP requests from API Gateway, Function \
                                URLs and Application Load Balancers, and calls \
                                ({\"tool_id\": …, \"input\": …})";
        match self {
            Self::AgentCore => f.write_str(
                "The event comes from an AgentCore Gateway that has this function as a Lambda \
                 target, which this function does not support; add an MCP server target with the \
                 function's URL instead (docs/mcp.md)",
            ),
            Self::NotHttp(fields) if fields.is_empty() => {
                write!(f, "{EXPECTED}; the event is an empty object")
            }
            Self::NotHttp(fields) => {
                write!(
                    f,
                    "{EXPECTED}; the event has the fields {}",
                    fields.join(", ")
                )
            }
            Self::Invalid(error) => {
                write!(f, "{EXPECTED}; the event cannot be parsed: {error}")
            }
        }
    }
}

impl std::error::Error for EventError {}
