//! What commands print, compared with what a page says.

/// Returns true if an output has the expected lines. In both, space around the text does not count. A
/// line `…` matches any number of lines, and elsewhere `…` matches any text of a line.
pub fn is_expected(expected: &str, actual: &str) -> bool {
    let [expected, actual] = [expected, actual].map(|text| text.trim().lines().collect::<Vec<_>>());
    matches_lines(&expected, &actual)
}

fn matches_lines(expected: &[&str], actual: &[&str]) -> bool {
    let Some((line, others)) = expected.split_first() else {
        return actual.is_empty();
    };
    if *line == "…" {
        return (0..=actual.len()).any(|skipped| matches_lines(others, &actual[skipped..]));
    }
    let Some((first, rest)) = actual.split_first() else {
        return false;
    };
    matches_line(line, first) && matches_lines(others, rest)
}

/// Returns true if a line is the expected one, in which `…` matches any text.
fn matches_line(expected: &str, actual: &str) -> bool {
    let parts: Vec<_> = expected.split('…').collect();
    let (first, rest) = parts.split_first().unwrap();
    let Some(mut left) = actual.strip_prefix(first) else {
        return false;
    };
    let Some((last, middle)) = rest.split_last() else {
        return left.is_empty();
    };
    for part in middle {
        let Some((_, after)) = left.split_once(part) else {
            return false;
        };
        left = after;
    }
    left.ends_with(last)
}
