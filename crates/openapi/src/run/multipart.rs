//! Bodies with parts: RFC 7578.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use lambda_tools_core::Failure;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::encode::text_of;
use crate::plan::BodyPlan;

/// One part.
struct Part {
    name: String,
    filename: Option<String>,
    media_type: Option<String>,
    content: Vec<u8>,
}

/// Returns a body and its media type.
pub(super) fn body_of(
    fields: impl IntoIterator<Item = (String, Value)>,
    plan: &BodyPlan,
) -> Result<(String, Vec<u8>), Failure> {
    let mut parts = Vec::new();
    for (name, value) in fields {
        let is_file = plan.files.contains(&name);
        let items = match value {
            Value::Array(items) => items,
            one => vec![one],
        };
        for item in items {
            let media_type = plan.media_types.get(&name).cloned();
            parts.extend(if is_file {
                Some(file(&name, &item, media_type)?)
            } else {
                value_part(&name, &item, media_type)
            });
        }
    }
    let boundary = boundary_of(&parts);
    let mut body = Vec::new();
    for part in parts {
        part.write(&boundary, &mut body);
    }
    body.extend(format!("--{boundary}--\r\n").bytes());
    Ok((format!("multipart/form-data; boundary={boundary}"), body))
}

fn file(name: &str, value: &Value, usual: Option<String>) -> Result<Part, Failure> {
    let text = |field: &str| value[field].as_str().map(str::to_owned);
    let content = text("base64").unwrap_or_default();
    let content = STANDARD
        .decode(content)
        .map_err(|_| Failure::new(format!("The property base64 of {name} is not base64")))?;
    let media_type = text("content_type").filter(|it| it.is_ascii() && !it.contains(['\r', '\n']));
    Ok(Part {
        name: name.to_owned(),
        filename: Some(text("filename").unwrap_or_else(|| "file".to_owned())),
        media_type: media_type
            .or(usual)
            .or_else(|| Some("application/octet-stream".to_owned())),
        content,
    })
}

fn value_part(name: &str, value: &Value, media_type: Option<String>) -> Option<Part> {
    let usual = || value.is_object().then(|| "application/json".to_owned());
    let media_type = media_type.or_else(usual);
    let content = text_of(value)?.into_bytes();
    Some(Part {
        name: name.to_owned(),
        filename: None,
        media_type,
        content,
    })
}

/// Returns a boundary that depends on the contents, and so is in none of them.
fn boundary_of(parts: &[Part]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part.content.len().to_be_bytes());
        hash.update(&part.content);
    }
    let hash = hash.finalize();
    let digits = hash.iter().take(16).map(|byte| format!("{byte:02x}"));
    format!("part-{}", digits.collect::<String>())
}

impl Part {
    fn write(&self, boundary: &str, body: &mut Vec<u8>) {
        let filename = self
            .filename
            .as_ref()
            .map(|it| format!("; filename=\"{}\"", quoted(it)));
        let media_type = self
            .media_type
            .as_ref()
            .map(|it| format!("\r\ncontent-type: {it}"));
        let head = format!(
            "--{boundary}\r\ncontent-disposition: form-data; name=\"{}\"{}{}",
            quoted(&self.name),
            filename.unwrap_or_default(),
            media_type.unwrap_or_default(),
        );
        body.extend(head.bytes());
        body.extend(b"\r\n\r\n");
        body.extend(&self.content);
        body.extend(b"\r\n");
    }
}

/// Returns a name as browsers write it: the HTML standard, Multipart form data.
fn quoted(name: &str) -> String {
    name.replace('\r', "%0D")
        .replace('\n', "%0A")
        .replace('"', "%22")
}
