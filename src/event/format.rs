//! The parsing of events: the first fields of an event determine its format.
//!
//! An event is then parsed once, as the right type; trying one type after another would parse a
//! large event several times and lose the reason why none matches.

use std::fmt;

use http::{HeaderName, HeaderValue};
use serde::{
    Deserialize, Deserializer,
    de::{Error as _, IgnoredAny, MapAccess, Visitor},
};
use serde_json::Value;

use crate::{EventKind, json::repaired, protocol::is_schema_of_call};

/// The sources of the events that schedules send by default, and of a Serverless plugin's.
const WARMERS: [&str; 3] = ["aws.events", "aws.scheduler", "serverless-plugin-warmup"];

/// The supported formats of events.
#[derive(Clone, Copy, Debug)]
pub(super) enum EventFormat {
    /// API Gateway REST API.
    Rest,
    /// API Gateway HTTP API with payload format 1.0: the same, with a version.
    HttpAsRest,
    /// API Gateway HTTP API with payload format 2.0, and Function URL.
    Http,
    /// Application Load Balancer.
    Alb,
    /// An event that only keeps an instance warm.
    WarmUp,
    /// The function's own event, which starts a task.
    Task,
    /// A call by itself, which has the format of the server's own calls.
    Direct,
    /// A message of MCP.
    Message,
}

/// Returns the format of an event.
pub(super) fn format_of(json: &str) -> Result<EventFormat, EventError> {
    let mut visitor = EventFormatVisitor::default();
    let result = serde_json::Deserializer::from_str(json).deserialize_map(&mut visitor);
    match (visitor.format, result) {
        (Some(format), _) => Ok(format),
        (None, Ok(())) if visitor.is_warm_up || visitor.fields.is_empty() => {
            Ok(EventFormat::WarmUp)
        }
        (None, Ok(())) => Err(EventError::NotHttp(visitor.fields)),
        (None, Err(error)) => Err(EventError::invalid(&error)),
    }
}

/// A reader of an event's first fields, which stops when they determine its format.
#[derive(Default)]
struct EventFormatVisitor {
    format: Option<EventFormat>,
    fields: Vec<String>,
    /// True if the event is for nothing else, unless another field determines its format: schedules
    /// can send calls.
    is_warm_up: bool,
}

#[derive(Deserialize)]
struct ContextKeys {
    elb: Option<IgnoredAny>,
    http: Option<IgnoredAny>,
}

impl<'de> Visitor<'de> for &mut EventFormatVisitor {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an event object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            self.format = match key.as_str() {
                "rawPath" | "rawQueryString" | "routeKey" => Some(EventFormat::Http),
                // Both of API Gateway's formats have a version, and emulators add null fields of
                // one format to events of the other.
                "version" => match map.next_value::<Option<String>>()?.as_deref() {
                    Some("2.0") => Some(EventFormat::Http),
                    Some("1.0") => Some(EventFormat::HttpAsRest),
                    _ => None,
                },
                // Several services' events have a field `request`, but none has these.
                super::TASK_EVENT if cfg!(feature = "tasks") => Some(EventFormat::Task),
                "tool_id" => Some(EventFormat::Direct),
                "jsonrpc" => Some(EventFormat::Message),
                "$schema" => match map.next_value::<Option<String>>()?.as_deref() {
                    Some(schema) if is_schema_of_call(schema) => Some(EventFormat::Direct),
                    _ => None,
                },
                "source" | "warmer" => {
                    let value = map.next_value::<Value>()?;
                    self.is_warm_up |= value == true || WARMERS.iter().any(|it| value == *it);
                    None
                }
                "resource" => map
                    .next_value::<Option<IgnoredAny>>()?
                    .map(|_| EventFormat::Rest),
                "requestContext" => match map.next_value::<ContextKeys>()? {
                    ContextKeys { elb: Some(_), .. } => Some(EventFormat::Alb),
                    ContextKeys { http: Some(_), .. } => Some(EventFormat::Http),
                    ContextKeys { .. } => Some(EventFormat::Rest),
                },
                _ => {
                    map.next_value::<IgnoredAny>()?;
                    None
                }
            };
            if self.format.is_some() {
                return Err(A::Error::custom("format determined"));
            }
            if self.fields.len() < 8 {
                self.fields.push(key.chars().take(40).collect());
            }
        }
        Ok(())
    }
}

/// Parses an event as its type, also if some of its headers are not valid HTTP.
pub(super) fn parse<T: for<'de> Deserialize<'de>>(json: &str) -> Result<T, EventError> {
    serde_json::from_str(json).or_else(|error| {
        // A failed invocation raises an alarm; an invalid header, which anyone can send, must not.
        let json = repaired(json.as_bytes()).unwrap_or_else(|| json.into());
        let mut event = serde_json::from_slice(&json).map_err(|_| EventError::invalid(&error))?;
        remove_nulls(&mut event);
        replace_invalid_headers(&mut event);
        T::deserialize(&event).map_err(|rest| {
            let is_missing = rest.to_string().starts_with("missing");
            EventError::invalid(if is_missing { &rest } else { &error })
        })
    })
}

/// Removes what some sources write for absent values.
fn remove_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, it| !it.is_null());
            fields.values_mut().for_each(remove_nulls);
        }
        Value::Array(items) => {
            items.retain(|it| !it.is_null());
            items.iter_mut().for_each(remove_nulls);
        }
        _ => {}
    }
}

/// Leaves only headers that are valid HTTP.
fn replace_invalid_headers(event: &mut Value) {
    let mut invalid = 0;
    for headers in ["headers", "multiValueHeaders"] {
        if let Some(headers) = event.get_mut(headers).and_then(Value::as_object_mut) {
            headers.retain(|name, value| {
                let is_header = HeaderName::try_from(name).is_ok();
                invalid += if is_header { replace_invalid(value) } else { 1 };
                is_header
            });
        }
    }
    if invalid > 0 {
        tracing::warn!(invalid, "the event has headers that are not valid HTTP");
    }
}

/// Replaces header values that are not valid, and returns their number. A valid value that nobody
/// can read takes their place: the absence of a header can mean trust, as that of `Origin` does.
fn replace_invalid(value: &mut Value) -> usize {
    let is_valid = |text: &str| HeaderValue::try_from(text).is_ok();
    match value {
        Value::Array(values) => return values.iter_mut().map(replace_invalid).sum(),
        Value::String(text) if is_valid(text) => return 0,
        _ => *value = "\u{fffd}".into(),
    }
    1
}

/// The reason why an event is not handled.
#[derive(Debug)]
pub(super) enum EventError {
    /// The server does not accept events of this kind.
    NotAccepted(EventKind),
    /// The client context of an `AgentCore` Gateway names no tool.
    NoTool,
    /// The event is from another service; these are the names of its first fields.
    NotHttp(Vec<String>),
    /// The event is of a supported format, but is invalid.
    Invalid(String),
}

impl EventError {
    /// Keeps serde's message only if it names a missing field. Other messages quote values, and an
    /// event's values must not be logged.
    fn invalid(error: &serde_json::Error) -> Self {
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
            Self::NotAccepted(kind) => write!(
                f,
                "This function does not accept events of the kind '{}' (TOOLS_EVENTS, or \
                 Server::events in the program; docs/lambda.md, \"Event sources\")",
                EventKind::NAMES[*kind as usize].0
            ),
            Self::NoTool => f.write_str(
                "The client context of this event has fields of an AgentCore Gateway, but no \
                 'bedrockAgentCoreToolName'",
            ),
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
