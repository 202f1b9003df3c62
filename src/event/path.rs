//! API Gateway's stages in paths.

/// Returns true for API Gateway's own domains: their paths begin with a stage.
pub(super) fn has_stage(domain: Option<&str>) -> bool {
    domain.is_none_or(|domain| domain.contains(".execute-api."))
}

/// Strips the stage from the front of a path. API Gateway adds none for `$default` or with custom
/// domains.
pub(super) fn without_stage<'a>(path: &'a str, stage: Option<&str>) -> &'a str {
    let stage = stage
        .filter(|stage| !stage.is_empty())
        .unwrap_or("$default");
    let rest = path
        .strip_prefix('/')
        .and_then(|path| path.strip_prefix(stage));
    match rest {
        Some("") => "/",
        Some(rest) if rest.starts_with('/') => rest,
        _ => path,
    }
}
