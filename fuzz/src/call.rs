//! Calls as a program describes them: the tool gets the same call in every format of
//! every protocol.
//!
//! The target `body` starts with bytes, most of which are not a call; here, every input is one. The
//! first byte of an input chooses the format, the rest are the texts of the call, which a NUL byte
//! separates. An empty text is absent.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::{
    MemoryBound, bounded,
    echo::{EchoTool, ToolCall},
    round_trip::{self, CallFormat, RoundTrip},
};

/// A call is held as a value, as text, and as a value again, and its server is new.
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

pub fn run(data: &[u8]) {
    let Some((format, texts)) = data.split_first() else {
        return;
    };
    let Ok(texts) = str::from_utf8(texts) else {
        return;
    };
    let format = FORMATS[usize::from(*format) % FORMATS.len()];
    round_trip::prepare();
    bounded(data.len(), BOUND, || check(format, texts));
}

fn check(format: CallFormat, texts: &str) {
    let call = call_of(format, texts);
    // A tool gets only the tokens and secrets that it names.
    let tool = EchoTool {
        id: call.tool.clone(),
        providers: call.tokens.keys().cloned().collect(),
        secrets: call.secrets.keys().cloned().collect(),
    };
    let received = RoundTrip::new([tool]).of(&call, format);
    assert_eq!(received, Ok(call), "{format:?}");
}

/// Returns a call with these texts, without those that the format has no place for.
fn call_of(format: CallFormat, texts: &str) -> ToolCall {
    let mut texts = texts.split('\0').map(str::to_owned);
    let mut text = || texts.next().filter(|text| !text.is_empty());
    let mut call = ToolCall {
        tool: "Fuzz.Dynamic@1.0.0".to_owned(),
        call_id: text(),
        trace_id: text(),
        input: Value::Null,
        user_id: text(),
        tokens: pairs(&mut text),
        secrets: pairs(&mut text),
    };
    let input = pairs(&mut text).into_iter();
    let input: Map<_, _> = input.map(|(name, text)| (name, text.into())).collect();
    call.input = input.into();
    if matches!(format, CallFormat::OpenTool | CallFormat::Mcp) {
        call = ToolCall {
            trace_id: None,
            user_id: None,
            tokens: BTreeMap::new(),
            secrets: BTreeMap::new(),
            ..call
        };
    }
    call
}

/// Takes up to three texts with their names.
fn pairs(text: &mut impl FnMut() -> Option<String>) -> BTreeMap<String, String> {
    let pairs = (0..3).filter_map(|_| {
        let (name, value) = (text(), text());
        name.or(value.clone()).zip(value)
    });
    pairs.collect()
}
