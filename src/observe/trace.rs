//! Which trace a call belongs to.
//!
//! Three can name it: the caller in W3C's `traceparent` header, the caller in the call's
//! `trace_id`, and Lambda in X-Ray's header. One of them wins, so that a call is in one trace. The
//! line of the log has the name that the caller knows, and the id of the trace where that is
//! another.

use http::HeaderMap;

/// The trace of a call. Reference: W3C Trace Context, 3.2; AWS X-Ray, Tracing header.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    /// As the call has it: any text. OXP 1.0, Call Tool, `trace_id`.
    named: Option<String>,
    /// The trace that the call's spans are in, if anybody has named one.
    pub(super) place: Option<TracePosition>,
    /// Where X-Ray has the invocation, if that is elsewhere.
    #[cfg_attr(
        not(any(feature = "otlp", test)),
        expect(dead_code, reason = "spans link to it")
    )]
    pub(super) aside: Option<TracePosition>,
    /// W3C's `tracestate`, as it came.
    #[cfg_attr(
        not(any(feature = "otlp", test)),
        expect(dead_code, reason = "spans carry it on")
    )]
    pub(super) state: Option<String>,
}

/// A place in a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TracePosition {
    pub(super) trace: u128,
    /// The span that is the parent. The call's own `trace_id` names none.
    pub(super) span: Option<u64>,
    pub(super) is_sampled: bool,
}

impl Trace {
    /// `named` is the call's `trace_id`, `xray` what Lambda says of the invocation.
    pub(crate) fn of(headers: &HeaderMap, named: Option<&str>, xray: Option<&str>) -> Self {
        let xray = xray.and_then(of_xray);
        let parent = single(headers, "traceparent").and_then(of_traceparent);
        let place = parent.or_else(|| named.and_then(of_name)).or(xray);
        let is_elsewhere = |it: &TracePosition| place.is_some_and(|place| place.trace != it.trace);
        Self {
            named: named.map(str::to_owned),
            place,
            aside: xray.filter(is_elsewhere),
            // It belongs to the other header.
            state: parent.and_then(|_| joined(headers, "tracestate")),
        }
    }

    /// What the log calls the trace: the call's own name for it, else the id that the headers have.
    pub(crate) fn label(&self) -> Option<String> {
        self.named
            .clone()
            .or_else(|| self.place.map(|place| place.to_string()))
    }
}

impl Trace {
    /// The trace's id, where the call has another name for it.
    pub(crate) fn id_beside_label(&self) -> Option<String> {
        let id = self.place?.to_string();
        self.named
            .as_ref()
            .filter(|&named| *named != id)
            .map(|_| id)
    }
}

impl std::fmt::Display for TracePosition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:032x}", self.trace)
    }
}

fn single<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    values.next().is_none().then(|| value.trim())
}

/// Of a header that may come in several pieces.
fn joined(headers: &HeaderMap, name: &str) -> Option<String> {
    let values = headers.get_all(name).iter();
    let values: Vec<_> = values.filter_map(|it| it.to_str().ok()).collect();
    (!values.is_empty()).then(|| values.join(","))
}

/// `00-<32 hex>-<16 hex>-<2 hex>`; later versions may have more behind it.
fn of_traceparent(header: &str) -> Option<TracePosition> {
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

/// 32 hexadecimal digits, or a UUID.
fn of_name(name: &str) -> Option<TracePosition> {
    let is_uuid = name.len() == 36
        && [8, 13, 18, 23]
            .iter()
            .all(|&at| name.as_bytes()[at] == b'-');
    let digits = if is_uuid {
        name.replace('-', "")
    } else {
        name.to_owned()
    };
    let trace = lower_hex(&digits.to_ascii_lowercase(), 32)?;
    (trace != 0).then_some(TracePosition {
        trace,
        span: None,
        is_sampled: true,
    })
}

/// `Root=1-<8 hex>-<24 hex>;Parent=<16 hex>;Sampled=1`, in any order.
fn of_xray(header: &str) -> Option<TracePosition> {
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
        // Lambda says 0 where X-Ray is off, which decides nothing about other traces.
        is_sampled: true,
    })
}

fn lower_hex(text: &str, digits: usize) -> Option<u128> {
    let is_lower_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let is_right = text.len() == digits && text.bytes().all(is_lower_hex);
    is_right.then(|| u128::from_str_radix(text, 16).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    const XRAY: &str =
        "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=0;Lineage=1:a:0";

    fn trace(headers: &[(&'static str, &str)], named: Option<&str>, xray: Option<&str>) -> Trace {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, value.parse().unwrap());
        }
        Trace::of(&map, named, xray)
    }

    #[test]
    fn a_traceparent_is_read_as_w3c_says() {
        let place = of_traceparent(PARENT).unwrap();
        assert_eq!(place.to_string(), "0af7651916cd43dd8448eb211c80319c");
        assert_eq!(place.span, Some(0xb7ad_6b71_6920_3331));
        assert!(place.is_sampled);
        assert!(
            !of_traceparent(&PARENT.replace("-01", "-00"))
                .unwrap()
                .is_sampled
        );
        // A version to come may have more.
        assert!(
            of_traceparent("cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-x").is_some()
        );
        for wrong in [
            "",
            "00",
            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-x",
            "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "00-0af7651916cd43dd8448eb211c80319-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-1",
            "00-+af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        ] {
            assert_eq!(of_traceparent(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn the_header_wins_over_the_call_and_that_over_x_ray() {
        let uuid = "4BF92F35-77B3-4DA6-A3CE-929D0E0E4736";
        let all = trace(&[("traceparent", PARENT)], Some(uuid), Some(XRAY));
        assert_eq!(all.place.unwrap().trace >> 96, 0x0af7_6519);
        assert_eq!(all.label().as_deref(), Some(uuid));
        assert_eq!(all.aside.unwrap().span, Some(0x5399_5c3f_42cd_8ad8));

        let call = trace(&[], Some(uuid), Some(XRAY));
        let place = call.place.unwrap();
        assert_eq!(place.to_string(), "4bf92f3577b34da6a3ce929d0e0e4736");
        assert_eq!(place.span, None);

        let xray = trace(&[], None, Some(XRAY));
        assert_eq!(xray.label().unwrap(), "5759e988bd862e3fe1be46a994272793");
        assert_eq!(xray.aside, None);
    }

    #[test]
    fn any_text_may_name_a_trace_in_the_log() {
        let named = trace(&[], Some("order 66"), Some(XRAY));
        assert_eq!(named.label().as_deref(), Some("order 66"));
        assert_eq!(named.place.unwrap().trace >> 96, 0x5759_e988);
        assert_eq!(trace(&[], Some("é".repeat(18).as_str()), None).place, None);
        assert_eq!(trace(&[], None, Some("Root=1-x;Parent=")).label(), None);
    }

    #[test]
    fn two_traceparents_are_none() {
        let twice = [("traceparent", PARENT), ("traceparent", PARENT)];
        assert_eq!(trace(&twice, None, None).place, None);
        let state = trace(
            &[("traceparent", PARENT), ("tracestate", "a=b")],
            None,
            None,
        );
        assert_eq!(state.state.as_deref(), Some("a=b"));
        assert_eq!(trace(&[("tracestate", "a=b")], None, None).state, None);
    }
}
