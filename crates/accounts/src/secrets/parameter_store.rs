//! AWS Systems Manager Parameter Store.
//!
//! The client is created when a secret is first read, so that a function whose tools need no secret
//! pays nothing.

use std::sync::OnceLock;

use aws_sdk_ssm::{
    Client,
    error::{ProvideErrorMetadata, SdkError},
    operation::get_parameters::GetParametersError,
    types::Parameter,
};
use tokio::task::JoinSet;

use super::{
    ReadFuture, ReadResult, SecretStore,
    batch::{self, Results, in_order, refusal, valid_names},
};
use crate::{Secret, StoreError, aws};

type RequestError = Box<SdkError<GetParametersError>>;

const SERVICE: &str = "AWS Systems Manager Parameter Store";

/// Secrets in AWS Systems Manager Parameter Store, for
/// [`Secrets::from_store`](super::Secrets::from_store): one parameter for each id.
///
/// ```
/// # use lambda_tools_accounts as lambda_tools;
/// use lambda_tools::secrets::{ParameterStore, Secrets};
///
/// // TWILIO_API_KEY is the parameter /my-stack/TWILIO_API_KEY.
/// let secrets = Secrets::from_store(ParameterStore::new().prefix("/my-stack/"));
/// ```
///
/// Parameters should have the type `SecureString`; those of the types `String` and `StringList` are
/// read as well, as the text that Parameter Store returns. A name may end with a version or a label
/// (`TWILIO_API_KEY:3`), and be an ARN, which parameters of other accounts require.
///
/// Region and credentials come from the environment: `AWS_REGION`, `AWS_ACCESS_KEY_ID`,
/// `AWS_SECRET_ACCESS_KEY` and `AWS_SESSION_TOKEN`, which Lambda sets. `AWS_ENDPOINT_URL` (or
/// `AWS_ENDPOINT_URL_SSM`) sets another endpoint. For anything else, set a [client](Self::client).
///
/// The role needs `ssm:GetParameters` on each parameter, and `kms:Decrypt` on the key if it is
/// customer-managed. Parameter Store refuses a whole request because of one parameter that the role
/// may not read; the other ones are then read with one request each.
#[derive(Debug, Default)]
#[must_use]
pub struct ParameterStore {
    prefix: String,
    client: OnceLock<Client>,
}

impl ParameterStore {
    /// Reads one parameter for each id, with the id as its name.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads one parameter for each id, named with the prefix and the id. A name with slashes
    /// must begin with one.
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// Sets the client, for your own region, credentials or endpoint.
    pub fn client(mut self, client: Client) -> Self {
        self.client = OnceLock::from(client);
        self
    }

    async fn read_each(&self, ids: &[String]) -> Result<Vec<ReadResult>, StoreError> {
        let names = ids.iter().map(|id| format!("{}{id}", self.prefix));
        let names: Vec<String> = names.collect();
        let what = "a parameter; a name with slashes begins with one";
        let (valid, mut results) = valid_names(&names, is_name, what);
        if !valid.is_empty() {
            let client = aws::client(&self.client, "SSM", Client::new)?;
            results.extend(read_batch(client, &valid).await);
        }
        let missing = StoreError::unavailable("Parameter Store returned no result for it");
        Ok(in_order(&names, results, &missing))
    }
}

impl SecretStore for ParameterStore {
    fn read<'a>(&'a self, ids: &'a [String]) -> ReadFuture<'a> {
        Box::pin(async move {
            let results = self.read_each(ids).await;
            results.unwrap_or_else(|error| vec![Err(error); ids.len()])
        })
    }

    fn location(&self, id: &str) -> String {
        format!("the parameter '{}{id}' of {SERVICE}", self.prefix)
    }

    /// Returns the limit of `GetParameters`.
    fn batch_size(&self) -> usize {
        10
    }
}

/// Reads parameters with one request; if it is refused because of one of them, with one for each.
async fn read_batch(client: &Client, names: &[String]) -> Results {
    let error = match request(client, names).await {
        Ok(results) => return results,
        Err(error) => error,
    };
    if names.len() == 1 || error.code().and_then(|it| refused(it, "", "")).is_none() {
        return failed(client, names, &error);
    }
    let mut singles = JoinSet::new();
    for name in names.chunks(1) {
        let (client, name) = (client.clone(), name.to_vec());
        singles.spawn(async move {
            let results = request(&client, &name).await;
            results.unwrap_or_else(|error| failed(&client, &name, &error))
        });
    }
    singles.join_all().await.into_iter().flatten().collect()
}

async fn request(client: &Client, names: &[String]) -> Result<Results, RequestError> {
    let request = client.get_parameters().set_names(Some(names.to_vec()));
    let response = request.with_decryption(true).send().await?;
    let result_of = |name: &String| {
        let parameter = response.parameters().iter().find(|it| is_at(name, it));
        let is_absent = response.invalid_parameters().contains(name);
        let found = parameter.map(|it| it.value().map(Secret::from));
        Some((name.clone(), Ok(found.or(is_absent.then_some(None))?)))
    };
    Ok(names.iter().filter_map(result_of).collect())
}

/// Returns true if this parameter is the response to a request for the name, which may be an ARN. Its
/// selector is a version or a label, with the colon. `/A` and `A` are the same parameter.
fn is_at(name: &str, parameter: &Parameter) -> bool {
    let bare = |name: &str| name.trim_start_matches('/').to_owned();
    let name = name.strip_suffix(parameter.selector().unwrap_or_default());
    name.is_some() && (name == parameter.arn() || name.map(bare) == parameter.name().map(bare))
}

/// Returns the results of a request that failed.
fn failed(client: &Client, names: &[String], error: &SdkError<GetParametersError>) -> Results {
    let region = client.config().region().map_or("*", AsRef::as_ref);
    let error_of = |name: &String| {
        let resource = arn(region, name);
        let specific = |code: &str, message: &str| refused(code, message, &resource);
        (name.clone(), Err(aws::error_of(SERVICE, error, specific)))
    };
    names.iter().map(error_of).collect()
}

/// Returns the error for a code that one parameter is enough for.
fn refused(code: &str, message: &str, resource: &str) -> Option<StoreError> {
    const ACTION: &str = "ssm:GetParameters";
    // IAM's message names the action; those of KMS, which Parameter Store passes on, vary.
    let is_by_iam = message.contains(ACTION);
    let remedy = is_by_iam.then(|| format!("allow {ACTION} on {resource}"));
    refusal(SERVICE, code, resource, remedy)
}

/// Returns the resource that a policy must name: without a version or label, and with one slash.
fn arn(region: &str, name: &str) -> String {
    let path = name.split(':').next().unwrap_or_default();
    let resource = format!("parameter/{}", path.trim_start_matches('/'));
    batch::arn("ssm", region, name, &resource)
}

/// Returns true if Parameter Store accepts the text as the name or the ARN of a parameter, perhaps
/// with a version or a label.
fn is_name(text: &str) -> bool {
    let is_path = text.starts_with('/') || text.starts_with("arn:") || !text.contains('/');
    is_path && !text.contains("//") && batch::is_name(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_answers_the_request_for_its_name_and_selector() {
        let of = |name: &str, selector: Option<&str>| {
            let path = name.trim_start_matches('/');
            let arn = format!("arn:aws:ssm:eu-west-1:1:parameter/{path}");
            let parameter = Parameter::builder().name(name).arn(arn);
            parameter.set_selector(selector.map(str::to_owned)).build()
        };
        let arn = "arn:aws:ssm:eu-west-1:1:parameter/a/KEY";
        for (asked, name, selector, is_answer) in [
            ("KEY", "KEY", None, true),
            ("/KEY", "KEY", None, true),
            ("KEY", "/KEY", None, true),
            ("/a/KEY", "/a/KEY", None, true),
            ("/a/KEY", "/b/KEY", None, false),
            ("/a/KEY", "KEY", None, false),
            ("KEY:3", "KEY", Some(":3"), true),
            ("KEY:3", "KEY", Some(":4"), false),
            ("KEY:3", "KEY", None, false),
            ("KEY", "KEY", Some(":3"), false),
            ("KEY:live", "KEY", Some(":live"), true),
            (arn, "/a/KEY", None, true),
            (&format!("{arn}:3"), "/a/KEY", Some(":3"), true),
            (arn, "/a/KEYS", None, false),
        ] {
            let answers = is_at(asked, &of(name, selector));
            assert_eq!(answers, is_answer, "{asked} {name} {selector:?}");
        }
    }

    #[test]
    fn names_with_slashes_begin_with_one() {
        for (name, is_valid) in [
            ("KEY", true),
            ("my.KEY-1_x:live", true),
            ("/my-stack/KEY", true),
            ("/my-stack/KEY:3", true),
            ("arn:aws:ssm:eu-west-1:1:parameter/a/KEY", true),
            ("my-stack/KEY", false),
            ("/my-stack//KEY", false),
            ("KEY $(x)", false),
            ("", false),
        ] {
            assert_eq!(is_name(name), is_valid, "{name}");
        }
    }

    #[test]
    fn a_policy_names_a_parameter_without_its_version_and_with_one_slash() {
        for (name, resource) in [
            ("KEY", "arn:aws:ssm:eu-west-1:*:parameter/KEY"),
            ("KEY:3", "arn:aws:ssm:eu-west-1:*:parameter/KEY"),
            ("/a/KEY:live", "arn:aws:ssm:eu-west-1:*:parameter/a/KEY"),
        ] {
            assert_eq!(arn("eu-west-1", name), resource);
        }
    }
}
