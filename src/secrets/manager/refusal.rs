//! The errors of Secrets Manager, and their remedies.

use aws_sdk_secretsmanager::error::{ProvideErrorMetadata, SdkError};

use crate::{StoreError, aws, secrets::ReadResult};

const SERVICE: &str = "AWS Secrets Manager";

/// Returns true if the secret is missing, is marked for deletion, or has no current version.
pub(super) fn is_absent(code: &str) -> bool {
    matches!(
        code,
        "ResourceNotFoundException" | "InvalidRequestException"
    )
}

/// Returns the result for one secret of a batch, from its error.
pub(super) fn result_of_error(name: &str, code: &str, message: &str, region: &str) -> ReadResult {
    if is_absent(code) {
        return Ok(None);
    }
    let resource = arn(region, name);
    let error = specific_error(code, message, "secretsmanager:GetSecretValue", &resource);
    Err(error.unwrap_or_else(|| aws::error_of_code(SERVICE, code)))
}

/// Returns the error for a failed request.
pub(super) fn request_error<E: ProvideErrorMetadata>(
    error: &SdkError<E>,
    action: &str,
    resource: &str,
) -> StoreError {
    let specific = |code: &str, message: &str| specific_error(code, message, action, resource);
    aws::error_of(SERVICE, error, specific)
}

fn specific_error(code: &str, message: &str, action: &str, resource: &str) -> Option<StoreError> {
    Some(match code {
        // Customer-managed keys have separate permissions.
        "AccessDeniedException" if message.contains("KMS") => StoreError::denied(format!(
            "allow kms:Decrypt on the KMS key that encrypts {resource}"
        )),
        "AccessDeniedException" if resource == "*" => {
            StoreError::denied(format!("allow {action} on {resource}"))
        }
        // Access is checked before existence, and a missing secret has an ARN without the six
        // characters.
        "AccessDeniedException" => StoreError::denied(format!(
            "allow {action} on {resource}; if that is allowed, there is no such secret"
        )),
        "DecryptionFailure" => {
            StoreError::undecodable(format!("{resource} cannot be decrypted with its KMS key"))
        }
        "InvalidParameterException" | "InvalidRequestException" | "ValidationException" => {
            StoreError::undecodable(format!("{SERVICE} does not accept {resource} ({code})"))
        }
        _ => return None,
    })
}

/// Returns the resource that a policy must name: Secrets Manager appends six characters to a name.
pub(super) fn arn(region: &str, name: &str) -> String {
    if name.starts_with("arn:") {
        return name.to_owned();
    }
    let partition = match region.split('-').next() {
        Some("cn") => "aws-cn",
        Some("us") if region.starts_with("us-gov-") => "aws-us-gov",
        _ => "aws",
    };
    format!("arn:{partition}:secretsmanager:{region}:*:secret:{name}-??????")
}

/// Returns true if Secrets Manager accepts the text as the name or the ARN of a secret.
pub(super) fn is_name(text: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"/_+=.@-:".contains(&byte);
    (1..=2048).contains(&text.len()) && text.bytes().all(is_allowed)
}
