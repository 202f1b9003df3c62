//! The spans of a call, one for the request, and inside it one for the tool's run; and the trace that
//! they belong to.
//!
//! Spans cost nothing unless something collects them: the export over OTLP, or the program's own
//! subscriber with [`TARGET`] enabled. Attribute names follow OpenTelemetry's semantic conventions
//! wherever these define one.
//!
//! A trace can be named in three places: by the caller in W3C's `traceparent` header or in the call's
//! `trace_id`, and by Lambda in X-Ray's header. One of them wins, so that a call is in one trace.
//! The log line has the caller's name for the trace, and also the trace's id if that is different.

use http::{HeaderMap, header::AsHeaderName};
use tracing::{Instrument, Span, field::Empty};
use uuid::Uuid;

use crate::{
    ToolId,
    text::{LONGEST_SHOWN, clipped},
};

/// The target of both spans.
pub(crate) const TARGET: &str = "lambda_tools::trace";

/// The two spans that enclose a call: one for the export, one for the log.
///
/// A spawned task must be instrumented with both: looking up the current span does not find a
/// parent that was not entered in that task.
#[derive(Clone, Debug)]
pub(crate) struct Spans {
    pub(crate) request: Span,
    pub(crate) call: Span,
    /// The `traceparent` of a call that goes on elsewhere.
    pub(crate) parent: Option<String>,
}

impl Spans {
    pub(crate) fn enclose<F: Future>(&self, future: F) -> impl Future<Output = F::Output> + use<F> {
        let future = future.instrument(self.call.clone());
        future.instrument(self.request.clone())
    }
}

/// Returns the span of a request for a call.
pub(crate) fn request(name: &'static str) -> Span {
    tracing::error_span!(
        target: TARGET,
        "request",
        "otel.name" = name,
        "otel.kind" = "server",
        "otel.status_code" = Empty,
        "error.type" = Empty,
        "faas.invocation_id" = Empty,
        "faas.coldstart" = Empty,
        "mcp.method.name" = Empty,
        "mcp.protocol.version" = Empty,
        "mcp.resource.uri" = Empty,
        "jsonrpc.request.id" = Empty,
        "gen_ai.operation.name" = Empty,
        "gen_ai.tool.name" = Empty,
        "gen_ai.prompt.name" = Empty,
        call_id = Empty,
        trace_id = Empty,
        dialect = Empty,
    )
}

/// Returns the span of a tool's run, inside the current one. Reference: OpenTelemetry, Semantic
/// conventions for generative AI, Execute tool span.
pub(crate) fn tool(tool: &ToolId, call_id: &str) -> Span {
    tracing::error_span!(
        target: TARGET,
        "tool",
        "otel.name" = format!("execute_tool {}", tool.qualified()),
        "otel.status_code" = Empty,
        "error.type" = Empty,
        "gen_ai.operation.name" = "execute_tool",
        "gen_ai.tool.name" = tool.qualified(),
        "gen_ai.tool.call.id" = &*clipped(call_id, LONGEST_SHOWN),
        version = %tool.version(),
    )
}

/// Marks a span as failed. `error_type` is one word.
pub(crate) fn mark_failed(span: &Span, error_type: &str) {
    span.record("otel.status_code", "ERROR");
    span.record("error.type", error_type);
}

/// The trace of a call. Reference: W3C Trace Context, 3.2; AWS X-Ray, Tracing header.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    /// The call's name for the trace: any text. OXP 1.0, Call Tool, `trace_id`.
    name: Option<String>,
    /// The position of the call's spans, if a trace is named.
    pub(super) position: Option<TracePosition>,
    /// The invocation's position in X-Ray, if that is another trace.
    pub(super) xray_link: Option<TracePosition>,
    /// W3C's `tracestate`, unchanged.
    pub(super) state: Option<String>,
}

/// A position in a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TracePosition {
    pub(super) trace: u128,
    /// The parent span; `None` if the call's `trace_id` names the trace.
    pub(super) span: Option<u64>,
    pub(super) is_sampled: bool,
}

impl Trace {
    /// Reads the trace of a request. `name` is the call's `trace_id`, `xray` the X-Ray header of
    /// the invocation.
    pub(crate) fn of(headers: &HeaderMap, name: Option<&str>, xray: Option<&str>) -> Self {
        let xray = xray.and_then(parse_xray);
        let parent = single(headers, "traceparent").and_then(parse_traceparent);
        let position = parent.or_else(|| name.and_then(parse_name)).or(xray);
        let is_other_trace =
            |it: &TracePosition| position.is_some_and(|position| position.trace != it.trace);
        Self {
            name: name.map(str::to_owned),
            position,
            xray_link: xray.filter(is_other_trace),
            // Only valid together with `traceparent`.
            state: parent.and_then(|_| joined(headers, "tracestate")),
        }
    }

    /// Returns the `traceparent` that continues the trace in another process. A trace that only its
    /// name identifies has none.
    pub(super) fn parent(&self) -> Option<String> {
        let position = self.position?;
        let (span, flags) = (position.span?, u8::from(position.is_sampled));
        Some(format!("00-{position}-{span:016x}-{flags:02x}"))
    }

    /// Returns the trace's name in the log: the call's own name for it or, without one, its id.
    pub(crate) fn label(&self) -> Option<String> {
        self.name
            .clone()
            .or_else(|| self.position.map(|position| position.to_string()))
    }

    /// Returns the trace's id, if the call has another name for it.
    pub(crate) fn id_unless_label(&self) -> Option<String> {
        let id = self.position?.to_string();
        self.name.as_ref().filter(|&name| *name != id).map(|_| id)
    }
}

impl std::fmt::Display for TracePosition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:032x}", self.trace)
    }
}

/// Returns the trimmed value of a header that occurs once.
pub(crate) fn single(headers: &HeaderMap, name: impl AsHeaderName) -> Option<&str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    values.next().is_none().then(|| value.trim())
}

/// Returns the value of a header that may occur several times.
fn joined(headers: &HeaderMap, name: &str) -> Option<String> {
    let values = headers.get_all(name).iter();
    let values: Vec<_> = values.filter_map(|it| it.to_str().ok()).collect();
    (!values.is_empty()).then(|| values.join(","))
}

/// Returns true for a valid `traceparent`.
pub(crate) fn is_traceparent(text: &str) -> bool {
    parse_traceparent(text).is_some()
}

/// Parses `00-<32 hex>-<16 hex>-<2 hex>`; later versions may append more.
fn parse_traceparent(header: &str) -> Option<TracePosition> {
    let mut parts = header.splitn(5, '-');
    let version = lower_hex(parts.next()?, 2)?;
    let trace = lower_hex(parts.next()?, 32)?;
    let span = lower_hex(parts.next()?, 16)?;
    let flags = lower_hex(parts.next()?, 2)?;
    if version == 0xff || (version == 0 && parts.next().is_some()) {
        return None;
    }
    Some(TracePosition {
        trace: Some(trace).filter(|&id| id != 0)?,
        span: Some(u64::try_from(span).ok().filter(|&id| id != 0)?),
        is_sampled: flags & 1 == 1,
    })
}

/// Parses 32 hexadecimal digits, or a UUID.
fn parse_name(name: &str) -> Option<TracePosition> {
    let is_plain = matches!(name.len(), 32 | 36);
    let id = Uuid::try_parse(name).ok()?;
    (is_plain && !id.is_nil()).then_some(TracePosition {
        trace: id.as_u128(),
        span: None,
        is_sampled: true,
    })
}

/// Parses `Root=1-<8 hex>-<24 hex>;Parent=<16 hex>;Sampled=1`, in any order.
fn parse_xray(header: &str) -> Option<TracePosition> {
    let field = |name: &str| {
        let fields = header.split(';').map(str::trim);
        fields
            .filter_map(|field| field.split_once('='))
            .find_map(|(key, value)| (key == name).then_some(value))
    };
    let (time, rest) = field("Root")?.strip_prefix("1-")?.split_once('-')?;
    let (time, rest) = (lower_hex(time, 8)?, lower_hex(rest, 24)?);
    let span = field("Parent").and_then(|id| lower_hex(id, 16));
    Some(TracePosition {
        trace: Some((time << 96) | rest).filter(|&id| id != 0)?,
        span: span
            .and_then(|id| u64::try_from(id).ok())
            .filter(|&id| id != 0),
        // Lambda sends 0 if X-Ray is off, which says nothing about other traces.
        is_sampled: true,
    })
}

fn lower_hex(text: &str, digits: usize) -> Option<u128> {
    let is_lower_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let is_valid = text.len() == digits && text.bytes().all(is_lower_hex);
    is_valid.then(|| u128::from_str_radix(text, 16).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    const XRAY: &str =
        "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=0;Lineage=1:a:0";

    fn trace(headers: &[(&'static str, &str)], name: Option<&str>, xray: Option<&str>) -> Trace {
        let mut map = HeaderMap::new();
        for (header, value) in headers {
            map.append(*header, value.parse().unwrap());
        }
        Trace::of(&map, name, xray)
    }

    #[test]
    fn a_traceparent_is_parsed_as_w3c_specifies() {
        const REST: &str = "0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331";
        let position = |is_sampled| TracePosition {
            trace: 0x0af7_6519_16cd_43dd_8448_eb21_1c80_319c,
            span: Some(0xb7ad_6b71_6920_3331),
            is_sampled,
        };
        for (header, expected) in [
            (format!("00-{REST}-01"), Some(position(true))),
            (format!("00-{REST}-00"), Some(position(false))),
            // A future version may append more.
            (format!("cc-{REST}-01-x"), Some(position(true))),
            (format!("ff-{REST}-01"), None),
            (format!("00-{REST}-01-x"), None),
            (format!("00-{REST}-1"), None),
            (format!("00-{REST}"), None),
            (PARENT.to_uppercase(), None),
            (PARENT.replace(&REST[..32], &"0".repeat(32)), None),
            (PARENT.replace("b7ad6b7169203331", &"0".repeat(16)), None),
            (PARENT.replace("319c", "319"), None),
            (PARENT.replace("0af7", "+af7"), None),
            (String::new(), None),
        ] {
            assert_eq!(parse_traceparent(&header), expected, "{header}");
        }
    }

    #[test]
    fn the_header_wins_over_the_call_and_the_call_over_x_ray() {
        let uuid = "4BF92F35-77B3-4DA6-A3CE-929D0E0E4736";
        let all = trace(&[("traceparent", PARENT)], Some(uuid), Some(XRAY));
        assert_eq!(all.position.unwrap().trace >> 96, 0x0af7_6519);
        assert_eq!(all.label().as_deref(), Some(uuid));
        assert_eq!(all.xray_link.unwrap().span, Some(0x5399_5c3f_42cd_8ad8));

        let call = trace(&[], Some(uuid), Some(XRAY));
        let position = call.position.unwrap();
        assert_eq!(position.to_string(), "4bf92f3577b34da6a3ce929d0e0e4736");
        assert_eq!(position.span, None);

        let xray = trace(&[], None, Some(XRAY));
        assert_eq!(xray.label().unwrap(), "5759e988bd862e3fe1be46a994272793");
        assert_eq!(xray.xray_link, None);
    }

    #[test]
    fn any_text_may_name_a_trace_in_the_log() {
        let order = trace(&[], Some("order 66"), Some(XRAY));
        assert_eq!(order.label().as_deref(), Some("order 66"));
        assert_eq!(order.position.unwrap().trace >> 96, 0x5759_e988);
        let wide = "é".repeat(18);
        assert_eq!(trace(&[], Some(&wide), None).position, None);
        assert_eq!(trace(&[], None, Some("Root=1-x;Parent=")).label(), None);
    }

    #[test]
    fn a_state_belongs_to_the_only_traceparent() {
        let (parent, state) = (("traceparent", PARENT), ("tracestate", "a=b"));
        assert_eq!(trace(&[parent, parent], None, None).position, None);
        let both = trace(&[parent, state], None, None);
        assert_eq!(both.state.as_deref(), Some("a=b"));
        assert_eq!(trace(&[state], None, None).state, None);
    }
}
