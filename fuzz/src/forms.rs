//! The forms of a secret that the library promises to find, and the search for them.

use std::fmt::Write;

use base64::{
    Engine,
    engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD},
};
use memchr::memmem;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

/// A step of encoding that the library promises to see through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layer {
    Percent,
    LowerPercent,
    Form,
    Json,
    AsciiJson,
    Debug,
    /// Every base64 alphabet, with or without padding: the two lowest bits choose.
    Base64(u8),
    Hex,
    UpperHex,
    Numbers,
}

impl Layer {
    pub(crate) fn of(byte: u8) -> Self {
        match byte % 13 {
            0 => Self::Percent,
            1 => Self::LowerPercent,
            2 => Self::Form,
            3 => Self::Json,
            4 => Self::AsciiJson,
            5 => Self::Debug,
            n @ 6..=9 => Self::Base64(n - 6),
            10 => Self::Hex,
            11 => Self::UpperHex,
            _ => Self::Numbers,
        }
    }

    /// True for a step that escapes single characters; several of them may follow each other.
    pub(crate) fn is_escape(self) -> bool {
        !matches!(
            self,
            Self::Base64(_) | Self::Hex | Self::UpperHex | Self::Numbers
        )
    }

    pub(crate) fn apply(self, text: &str) -> String {
        match self {
            Self::Percent => utf8_percent_encode(text, NON_ALPHANUMERIC).to_string(),
            Self::LowerPercent => lower_percent(text),
            Self::Form => url::form_urlencoded::byte_serialize(text.as_bytes()).collect(),
            Self::Json => without_quotes(&Value::from(text).to_string()),
            Self::AsciiJson => ascii_json(text),
            Self::Debug => without_quotes(&format!("{text:?}")),
            Self::Base64(engine) => encoded(engine, text.as_bytes()),
            Self::Hex => hex(text.as_bytes(), false),
            Self::UpperHex => hex(text.as_bytes(), true),
            Self::Numbers => format!("{:?}", text.as_bytes()),
        }
    }
}

fn without_quotes(quoted: &str) -> String {
    quoted[1..quoted.len() - 1].to_owned()
}

fn lower_percent(text: &str) -> String {
    text.bytes().fold(String::new(), |mut escaped, byte| {
        let written = if byte.is_ascii_alphanumeric() {
            escaped.push(char::from(byte));
            Ok(())
        } else {
            write!(escaped, "%{byte:02x}")
        };
        written.expect("writing to memory does not fail");
        escaped
    })
}

fn ascii_json(text: &str) -> String {
    text.encode_utf16()
        .fold(String::new(), |mut escaped, unit| {
            write!(escaped, "\\u{unit:04x}").expect("writing to memory does not fail");
            escaped
        })
}

fn hex(bytes: &[u8], is_upper: bool) -> String {
    bytes.iter().fold(String::new(), |mut hex, byte| {
        let written = if is_upper {
            write!(hex, "{byte:02X}")
        } else {
            write!(hex, "{byte:02x}")
        };
        written.expect("writing to memory does not fail");
        hex
    })
}

pub(crate) fn encoded(engine: u8, bytes: &[u8]) -> String {
    let engines = [&STANDARD, &STANDARD_NO_PAD, &URL_SAFE, &URL_SAFE_NO_PAD];
    engines[usize::from(engine) % engines.len()].encode(bytes)
}

/// Searches texts for every form of some secrets.
pub(crate) struct SecretSearch(Vec<(memmem::Finder<'static>, String)>);

impl SecretSearch {
    pub(crate) fn new<'a>(secrets: impl IntoIterator<Item = &'a str>) -> Self {
        let mut forms = Vec::new();
        for secret in secrets {
            let mut texts = vec![secret.to_owned()];
            texts.extend((0..13).map(|layer| Layer::of(layer).apply(secret)));
            for offset in 1..3 {
                // The middle of other encoded data: the edges depend on the bytes around them.
                let shifted = encoded(1, &[&[b'x'].repeat(offset), secret.as_bytes()].concat());
                texts.push(shifted[4..shifted.len() - 4].to_owned());
            }
            for text in texts {
                forms.push((memmem::Finder::new(&text).into_owned(), text));
            }
        }
        Self(forms)
    }

    /// The form that a text contains.
    pub(crate) fn found(&self, text: &[u8]) -> Option<&str> {
        let found = self
            .0
            .iter()
            .find(|(finder, _)| finder.find(text).is_some());
        found.map(|(_, form)| form.as_str())
    }
}
