//! The time during which a token is valid.

use std::time::SystemTime;

use crate::clock::since_epoch;

/// The permitted clock difference, in seconds.
const LEEWAY: f64 = 60.0;

/// Checks `exp` and `nbf`: RFC 7519, 4.1.4 and 4.1.5. A token must have an `exp`.
pub(in crate::auth) fn check_validity(
    exp: Option<f64>,
    nbf: Option<f64>,
    now: SystemTime,
) -> Result<(), &'static str> {
    let now = since_epoch(now).as_secs_f64();
    match exp {
        None => return Err("the JWT has no exp claim"),
        Some(exp) if now >= exp + LEEWAY => return Err("the JWT has expired"),
        Some(_) => {}
    }
    if nbf.is_some_and(|nbf| now < nbf - LEEWAY) {
        return Err("the JWT is not valid yet");
    }
    Ok(())
}
