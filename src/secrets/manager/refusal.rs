//! What Secrets Manager says when it does not give a value, and what to do about it.

use aws_sdk_secretsmanager::error::{ProvideErrorMetadata, SdkError};

use crate::{StoreError, aws, secrets::ReadResult};

const SERVICE: &str = "AWS Secrets Manager";

/// Not there, or on its way out: marked for deletion, or without a current version.
pub(super) fn is_absent(code: &str) -> bool {
    matches!(
        code,
        "ResourceNotFoundException" | "InvalidRequestException"
    )
}

/// What Secrets Manager says of one secret among several.
pub(super) fn unreadable(name: &str, code: &str, message: &str, region: &str) -> ReadResult {
    if is_absent(code) {
        return Ok(None);
    }
    let resource = arn(region, name);
    let own = own_error(code, message, "secretsmanager:GetSecretValue", &resource);
    Err(own.unwrap_or_else(|| aws::error_of_code(SERVICE, code)))
}

/// A request that did not succeed.
pub(super) fn refused<E: ProvideErrorMetadata>(
    error: &SdkError<E>,
    action: &str,
    resource: &str,
) -> StoreError {
    let own = |code: &str, message: &str| own_error(code, message, action, resource);
    aws::error_of(SERVICE, error, own)
}

fn own_error(code: &str, message: &str, action: &str, resource: &str) -> Option<StoreError> {
    Some(match code {
        // Keys of one's own have permissions of their own.
        "AccessDeniedException" if message.contains("KMS") => StoreError::denied(format!(
            "allow kms:Decrypt on the KMS key with which {resource} is encrypted"
        )),
        "AccessDeniedException" if resource == "*" => {
            StoreError::denied(format!("allow {action} on {resource}"))
        }
        // What may be read is decided before it is looked for, by the name alone where there is
        // no secret.
        "AccessDeniedException" => StoreError::denied(format!(
            "allow {action} on {resource}; if that is allowed, there is no such secret"
        )),
        "DecryptionFailure" => {
            StoreError::undecodable(format!("{resource} cannot be decrypted with its KMS key"))
        }
        "InvalidParameterException" | "InvalidRequestException" | "ValidationException" => {
            StoreError::undecodable(format!("{SERVICE} does not take {resource} ({code})"))
        }
        _ => return None,
    })
}

/// What a policy has to name: Secrets Manager puts six characters behind a name.
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

/// What Secrets Manager takes as the name of a secret, or as its ARN.
pub(super) fn is_name(text: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"/_+=.@-:".contains(&byte);
    (1..=2048).contains(&text.len()) && text.bytes().all(is_allowed)
}
