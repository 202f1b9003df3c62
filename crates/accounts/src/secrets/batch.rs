//! What the stores of AWS share: batches of secrets by their names, and the remedies of errors.

use std::collections::HashMap;

use super::ReadResult;
use crate::StoreError;

/// The results of a batch, by name.
pub(super) type Results = HashMap<String, ReadResult>;

/// Returns the valid names, and an error for each of the others: the services reject a whole batch
/// because of one invalid name.
pub(super) fn valid_names(
    names: &[String],
    is_name: impl Fn(&str) -> bool,
    what: &str,
) -> (Vec<String>, Results) {
    let (valid, invalid): (Vec<_>, Vec<_>) = names.iter().cloned().partition(|it| is_name(it));
    let error = |name: String| {
        let detail = format!("'{name}' is not a valid name for {what}");
        (name, Err(StoreError::undecodable(detail)))
    };
    (valid, invalid.into_iter().map(error).collect())
}

/// Returns the results in the order of the names; for a name without one, it is this error.
pub(super) fn in_order(
    names: &[String],
    mut results: Results,
    otherwise: &StoreError,
) -> Vec<ReadResult> {
    let missing = || Err(otherwise.clone());
    let result_of = |name: &String| results.remove(name).unwrap_or_else(missing);
    names.iter().map(result_of).collect()
}

/// Returns true if the text has the length and the characters of a name or an ARN.
pub(super) fn is_name(text: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"/_+=.@-:".contains(&byte);
    (1..=2048).contains(&text.len()) && text.bytes().all(is_allowed)
}

/// Returns the resource that a policy must name for a secret: its name if that is an ARN, otherwise
/// the ARN in any account.
pub(super) fn arn(service: &str, region: &str, name: &str, resource: &str) -> String {
    if name.starts_with("arn:") {
        return name.to_owned();
    }
    let partition = match region.split('-').next() {
        Some("cn") => "aws-cn",
        Some("us") if region.starts_with("us-gov-") => "aws-us-gov",
        _ => "aws",
    };
    format!("arn:{partition}:{service}:{region}:*:{resource}")
}

/// Returns the error for a code that concerns single secrets. `remedy` is that of a denial; without
/// one, the denial is that of the key, because customer-managed keys have separate permissions.
pub(super) fn refusal(
    service: &str,
    code: &str,
    resource: &str,
    remedy: Option<String>,
) -> Option<StoreError> {
    let of_key = || format!("allow kms:Decrypt on the KMS key that encrypts {resource}");
    Some(match code {
        "AccessDeniedException" => StoreError::denied(remedy.unwrap_or_else(of_key)),
        "DecryptionFailure" | "InvalidKeyId" => {
            StoreError::undecodable(format!("{resource} cannot be decrypted with its KMS key"))
        }
        "InvalidParameterException" | "InvalidRequestException" | "ValidationException" => {
            StoreError::undecodable(format!("{service} does not accept {resource} ({code})"))
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_arn_has_the_partition_of_its_region() {
        let arn = |region: &str| arn("ssm", region, "A", "parameter/A");
        assert_eq!(arn("eu-west-1"), "arn:aws:ssm:eu-west-1:*:parameter/A");
        assert_eq!(arn("cn-north-1"), "arn:aws-cn:ssm:cn-north-1:*:parameter/A");
        let us = arn("us-gov-west-1");
        assert_eq!(us, "arn:aws-us-gov:ssm:us-gov-west-1:*:parameter/A");
        assert_eq!(arn("*"), "arn:aws:ssm:*:*:parameter/A");
    }
}
