//! Media types: RFC 9110, 8.3.

/// The names of formats that are text.
const TEXTS: &str = "xml yaml ndjson jsonl jsonlines json-lines json-seq graphql javascript ecmascript typescript sql \
    toml csv pem-file sh";

/// Returns a media type without its parameters, in lower case: RFC 9110, 8.3.1.
pub(crate) fn essence_of(media_type: &str) -> String {
    let essence = media_type.split(';').next().unwrap_or_default();
    essence.trim().to_ascii_lowercase()
}

/// Returns true for JSON, in any of its media types.
pub(crate) fn is_json(essence: &str) -> bool {
    essence.ends_with("/json") || essence.ends_with("+json")
}

/// Returns true for the media types of text beside JSON.
pub(crate) fn is_textual(essence: &str) -> bool {
    let (kind, name) = essence.split_once('/').unwrap_or_default();
    let name = name.trim_start_matches("x-");
    let mut formats = TEXTS.split(' ');
    kind == "text"
        || formats.any(|it| it == name)
        || name.ends_with("+xml")
        || name.ends_with("+yaml")
}

/// Returns the usual media type of a range such as `image/*`.
pub(crate) fn usual_in(range: &str) -> &'static str {
    match range {
        "image" => "image/png",
        "audio" => "audio/mpeg",
        "video" => "video/mp4",
        "font" => "font/woff2",
        _ => "application/octet-stream",
    }
}
