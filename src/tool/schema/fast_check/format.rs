//! The formats of common types, in their usual form. All other texts are left to `jsonschema`.

use super::Verdict::{self, Unknown, Valid};

/// A format whose usual form is simple.
#[derive(Clone, Copy, Debug)]
pub(super) enum Format {
    Date,
    DateTime,
    Uuid,
}

impl Format {
    pub(super) fn of(name: &str) -> Option<Self> {
        match name {
            "date" => Some(Self::Date),
            "date-time" => Some(Self::DateTime),
            "uuid" => Some(Self::Uuid),
            _ => None,
        }
    }

    pub(super) fn check(self, text: &str) -> Verdict {
        let text = text.as_bytes();
        let is_usual = match self {
            Self::Date => is_date(text),
            Self::DateTime => is_date_time(text),
            Self::Uuid => matches(text, b"xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"),
        };
        if is_usual { Valid } else { Unknown }
    }
}

/// RFC 3339, without the last days of months.
fn is_date(text: &[u8]) -> bool {
    matches(text, b"0000-00-00")
        && (1..=12).contains(&two_digits(&text[5..]))
        && (1..=28).contains(&two_digits(&text[8..]))
}

/// RFC 3339, with `T` and `Z` or an offset, without leap seconds.
fn is_date_time(text: &[u8]) -> bool {
    let Some((date, time)) = text.split_at_checked(10) else {
        return false;
    };
    let Some((clock, rest)) = time.split_at_checked(9) else {
        return false;
    };
    let fraction = match rest.strip_prefix(b".") {
        None => 0,
        Some(digits) => 1 + digits.iter().take_while(|it| it.is_ascii_digit()).count(),
    };
    is_date(date)
        && matches(clock, b"T00:00:00")
        && two_digits(&clock[1..]) < 24
        && two_digits(&clock[4..]) < 60
        && two_digits(&clock[7..]) < 60
        && fraction != 1
        && is_offset(&rest[fraction..])
}

fn is_offset(text: &[u8]) -> bool {
    text == b"Z"
        || (matches(text, b"+00:00") || matches(text, b"-00:00"))
            && two_digits(&text[1..]) < 24
            && two_digits(&text[4..]) < 60
}

/// True if the text has a decimal digit for each `0`, a hexadecimal digit for each `x`, and
/// otherwise the same characters.
fn matches(text: &[u8], pattern: &[u8]) -> bool {
    let is_match = |(byte, pattern): (&u8, &u8)| match pattern {
        b'0' => byte.is_ascii_digit(),
        b'x' => byte.is_ascii_hexdigit(),
        other => byte == other,
    };
    text.len() == pattern.len() && text.iter().zip(pattern).all(is_match)
}

fn two_digits(text: &[u8]) -> u8 {
    10 * (text[0] - b'0') + (text[1] - b'0')
}
