//! The errors of Secrets Manager, and their remedies.

use aws_sdk_secretsmanager::error::{ProvideErrorMetadata, SdkError};

use crate::{
    StoreError, aws,
    secrets::{ReadResult, batch},
};

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
    // Access is checked before existence, and a missing secret has an ARN without the six characters.
    let hint = match resource {
        "*" => "",
        _ => "; if that is allowed, there is no such secret",
    };
    let is_by_iam = !message.contains("KMS");
    let remedy = is_by_iam.then(|| format!("allow {action} on {resource}{hint}"));
    batch::refusal(SERVICE, code, resource, remedy)
}

/// Returns the resource that a policy must name: Secrets Manager appends six characters to a name.
pub(super) fn arn(region: &str, name: &str) -> String {
    let resource = format!("secret:{name}-??????");
    batch::arn("secretsmanager", region, name, &resource)
}
