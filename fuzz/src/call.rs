//! Calls as a program describes them to a client: the server decodes the same call in every form of
//! every protocol.
//!
//! The target `body` starts with bytes, most of which are not a call; here, every input is one. The
//! first byte of an input chooses the form, the rest are the texts of the call, which a NUL byte
//! separates. An empty text is absent.

use std::{collections::BTreeMap, sync::LazyLock};

use lambda_tools::fuzzing::{CallFormat, DecodedCall};
use serde_json::{Map, Value};

use crate::{MemoryBound, bounded, round_trip::RoundTrip, server::toolkit};

/// A call is held as a value, as text, and as a value again.
const BOUND: MemoryBound = MemoryBound {
    per_byte: 512,
    base: 1 << 20,
};

const FORMATS: [CallFormat; 5] = [
    CallFormat::OxpHeader,
    CallFormat::OxpSchema,
    CallFormat::Otc,
    CallFormat::OpenTool,
    CallFormat::Mcp,
];

static ROUND_TRIPS: LazyLock<[RoundTrip; 5]> =
    LazyLock::new(|| FORMATS.map(|format| RoundTrip::new(format, toolkit())));

pub fn run(data: &[u8]) {
    let Some((format, texts)) = data.split_first() else {
        return;
    };
    let Ok(texts) = str::from_utf8(texts) else {
        return;
    };
    let format = usize::from(*format) % FORMATS.len();
    let round_trips: &[RoundTrip; 5] = &ROUND_TRIPS;
    bounded(data.len(), BOUND, || {
        check(&round_trips[format], FORMATS[format], texts);
    });
}

fn check(round_trip: &RoundTrip, format: CallFormat, texts: &str) {
    let call = call_of(format, texts);
    let arrived = round_trip.of(&call, format);
    assert_eq!(arrived, Some(call), "{format:?}");
}

/// A call with these texts, without those that the form has no place for.
fn call_of(format: CallFormat, texts: &str) -> DecodedCall {
    let mut texts = texts.split('\0').map(str::to_owned);
    let mut text = || texts.next().filter(|text| !text.is_empty());
    let is_oxp = format.path() == "/tools/call";
    let mut call = DecodedCall {
        tool: "Fuzz.Dynamic".to_owned(),
        call_id: text(),
        trace_id: text(),
        lossy_integers: Vec::new(),
        input: Value::Null,
        user_id: text(),
        tokens: pairs(&mut text),
        secrets: pairs(&mut text),
    };
    let input = pairs(&mut text).into_iter();
    let input: Map<_, _> = input.map(|(name, text)| (name, text.into())).collect();
    call.input = input.into();
    if !is_oxp {
        call = DecodedCall {
            trace_id: None,
            user_id: None,
            tokens: BTreeMap::new(),
            secrets: BTreeMap::new(),
            ..call
        };
    }
    call
}

/// Up to three texts with their names.
fn pairs(text: &mut impl FnMut() -> Option<String>) -> BTreeMap<String, String> {
    let pairs = (0..3).filter_map(|_| {
        let (name, value) = (text(), text());
        name.or(value.clone()).zip(value)
    });
    pairs.collect()
}
