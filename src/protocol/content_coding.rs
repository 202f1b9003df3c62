//! The content codings of responses, and those that a client accepts: RFC 9110, section 12.5.3.

use http::{HeaderMap, header::ACCEPT_ENCODING};

/// A content coding of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Coding {
    Identity,
    Gzip,
}

/// The codings to choose from, the preferred one first. A response without a coding is always one of
/// them: it is what a client gets if nothing that it accepts can be made.
pub(super) fn accepted(headers: &HeaderMap) -> &'static [Coding] {
    let weights = Weights::of(headers);
    let gzip = weights.gzip.or(weights.any).unwrap_or(0);
    if gzip == 0 {
        return &[Coding::Identity];
    }
    // A client that lists compression wants it, unless it wants plain responses more.
    if weights.identity.is_some_and(|identity| identity > gzip) {
        return &[Coding::Identity, Coding::Gzip];
    }
    &[Coding::Gzip, Coding::Identity]
}

/// The weights in `Accept-Encoding`, in thousandths; `None` for a coding that it does not name.
#[derive(Default)]
struct Weights {
    gzip: Option<u16>,
    identity: Option<u16>,
    any: Option<u16>,
}

impl Weights {
    fn of(headers: &HeaderMap) -> Self {
        let mut weights = Self::default();
        let values = headers.get_all(ACCEPT_ENCODING).iter();
        let values = values.filter_map(|value| value.to_str().ok());
        for item in values.flat_map(|value| value.split(',')) {
            let (coding, parameters) = item.split_once(';').unwrap_or((item, ""));
            let coding = coding.trim().to_ascii_lowercase();
            let slot = match coding.as_str() {
                // Section 8.4.1.3: the two are equivalent.
                "gzip" | "x-gzip" => &mut weights.gzip,
                "identity" => &mut weights.identity,
                "*" => &mut weights.any,
                _ => continue,
            };
            *slot = Some(weight(parameters));
        }
        weights
    }
}

/// Section 12.4.2: `q=0.5`, 1 by default. An invalid weight is 0: a plain response is never wrong.
fn weight(parameters: &str) -> u16 {
    let parameters = parameters.trim();
    if parameters.is_empty() {
        return 1000;
    }
    let value = parameters
        .split_once('=')
        .filter(|(name, _)| name.trim().eq_ignore_ascii_case("q"));
    let Some((_, value)) = value else {
        return 0;
    };
    let (whole, decimals) = value.trim().split_once('.').unwrap_or((value.trim(), ""));
    let is_valid = decimals.len() <= 3 && decimals.bytes().all(|it| it.is_ascii_digit());
    let thousandths = format!("{decimals:0<3}").parse().unwrap_or(0);
    match whole {
        "0" if is_valid => thousandths,
        "1" if is_valid && thousandths == 0 => 1000,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[&str]) -> &'static [Coding] {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(ACCEPT_ENCODING, value.parse().unwrap());
        }
        accepted(&headers)
    }

    #[test]
    fn gzip_is_preferred_where_it_is_accepted() {
        for accepting in [
            "gzip",
            "gzip, deflate, br, zstd",
            "br;q=1.0, GZIP;q=0.8, *;q=0.1",
            "x-gzip",
            "*",
            "deflate, *;q=0.001",
            "gzip ; q=1.000",
            "gzip;Q=0.5,identity;q=0.5",
            "identity;q=0, gzip;q=0.1",
            ", gzip,",
        ] {
            assert_eq!(
                of(&[accepting]),
                [Coding::Gzip, Coding::Identity],
                "{accepting}"
            );
        }
        assert_eq!(of(&["br", "gzip"]), [Coding::Gzip, Coding::Identity]);
        assert_eq!(
            of(&["gzip;q=0.5, identity"]),
            [Coding::Identity, Coding::Gzip]
        );
    }

    #[test]
    fn other_responses_are_plain() {
        for refusing in [
            "",
            "identity",
            "br",
            "gzip;q=0",
            "gzip;q=0.000, *",
            "*;q=0",
            "gzip;q=0.0001",
            "gzip;q=2",
            "gzip;q=1.5",
            "gzip;q=",
            "gzip;level=9",
            "gzipped",
        ] {
            assert_eq!(of(&[refusing]), [Coding::Identity], "{refusing}");
        }
        assert_eq!(of(&[]), [Coding::Identity]);
    }
}
