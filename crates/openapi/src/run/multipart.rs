//! Bodies with parts: RFC 7578.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use lambda_tools_core::{Failure, text::hex};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::encode::{items_of, text_of};
use crate::plan::BodyPlan;

/// Returns a body and its media type.
pub(super) fn body_of(
    fields: &Map<String, Value>,
    plan: &BodyPlan,
) -> Result<(String, Vec<u8>), Failure> {
    // It depends on the contents, and so is in none of them.
    let boundary = hex(&Sha256::digest(serde_json::to_vec(fields)?)[..16]);
    let mut body = Vec::new();
    for (name, value) in fields {
        for item in items_of(value) {
            let mut media_type = plan.media_types.get(name).map(String::as_str);
            let mut filename = String::new();
            let content = if plan.files.contains(name) {
                let own = item["content_type"].as_str();
                let own = own.filter(|it| it.is_ascii() && !it.contains(['\r', '\n']));
                media_type = own.or(media_type).or(Some("application/octet-stream"));
                let file = item["filename"].as_str().unwrap_or("file");
                filename = format!("; filename=\"{}\"", quoted(file));
                let content = item["base64"].as_str().unwrap_or_default();
                let error = || format!("The property base64 of {name} is not base64");
                (STANDARD.decode(content)).map_err(|_| Failure::new(error()))?
            } else {
                let Some(text) = text_of(item) else { continue };
                media_type = media_type.or(item.is_object().then_some("application/json"));
                text.into_bytes()
            };
            let media_type = media_type.map(|it| format!("\r\ncontent-type: {it}"));
            let head = format!(
                "--part-{boundary}\r\ncontent-disposition: form-data; name=\"{}\"{filename}{}\r\n\r\n",
                quoted(name),
                media_type.unwrap_or_default(),
            );
            body.extend([head.as_bytes(), &content, b"\r\n"].concat());
        }
    }
    body.extend(format!("--part-{boundary}--\r\n").bytes());
    let media_type = format!("multipart/form-data; boundary=part-{boundary}");
    Ok((media_type, body))
}

/// Returns a name as browsers write it: the HTML standard, Multipart form data.
fn quoted(name: &str) -> String {
    name.replace('\r', "%0D")
        .replace('\n', "%0A")
        .replace('"', "%22")
}
