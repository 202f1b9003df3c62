//! `template.yaml`, compared with the code and with the pages, above all `docs/template.md`.

mod alarms;
mod cloudwatch;
mod combinations;
mod pairs;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    process::Command,
    sync::LazyLock,
    time::Duration,
};

use reqwest::redirect::Policy;
use serde_json::Value;
use test_support::{
    aws::{CREDENTIALS, Emulator},
    documents::{blocks, pages, quoted, table},
    installed,
    lambda::RUNTIME,
    openid::{Act, Browser, OpenId, form_in},
    repository,
    sam::{Template, of_type},
};

use crate::support::{Running, toolbox};
use events::{Stub, TWILIO_KEY};

pub(crate) use alarms::assert_on_dashboard;

/// Sorted, for readable messages.
type Names = BTreeSet<String>;

fn template() -> &'static Template {
    static TEMPLATE: LazyLock<Template> =
        LazyLock::new(|| Template::transform(&repository("template.yaml")));
    &TEMPLATE
}

/// Returns the properties of all resources of a type, with their conditions.
fn resources(of_type: &str) -> BTreeMap<&'static str, &'static Value> {
    let all = template().json["Resources"].as_object().unwrap();
    all.iter()
        .filter(|(_, it)| it["Type"] == of_type)
        .map(|(name, it)| (&**name, &it["Properties"]))
        .collect()
}

fn function(name: &str) -> &'static Value {
    resources("AWS::Lambda::Function")[name]
}

fn variables_of(function: &Value) -> Names {
    let variables = function["Environment"]["Variables"].as_object().unwrap();
    variables.keys().cloned().collect()
}

/// Returns the actions that a role allows, each with its resources.
fn actions_of(role: &Value) -> Vec<(String, String)> {
    fn collect<'a>(value: &'a Value, statements: &mut Vec<&'a Value>) {
        match value {
            Value::Object(map) if map.contains_key("Action") => statements.push(value),
            Value::Object(map) => map.values().for_each(|it| collect(it, statements)),
            Value::Array(list) => list.iter().for_each(|it| collect(it, statements)),
            _ => {}
        }
    }
    let mut statements = Vec::new();
    collect(&role["Policies"], &mut statements);
    let mut actions = Vec::new();
    for statement in statements {
        assert_eq!(statement["Effect"], "Allow");
        let names = match &statement["Action"] {
            Value::String(action) => vec![action.clone()],
            Value::Array(list) => list
                .iter()
                .map(|it| it.as_str().unwrap().to_owned())
                .collect(),
            other => panic!("{other}"),
        };
        let resource = statement["Resource"].to_string();
        actions.extend(names.into_iter().map(|it| (it, resource.clone())));
    }
    actions
}

/// Returns the variables that the template sets for the toolbox, with these values; the others are
/// empty.
fn environment(values: &[(&'static str, &str)]) -> Vec<(String, String)> {
    let set = variables_of(function("Toolbox"));
    for (name, _) in values {
        assert!(set.contains(*name), "the template does not set {name}");
    }
    let values: BTreeMap<_, _> = values.iter().copied().chain(RUNTIME).collect();
    let value = |name: &String| values.get(&**name).copied().unwrap_or_default().to_owned();
    set.iter().map(|name| (name.clone(), value(name))).collect()
}

/// Returns the actions of requests to AWS, each with its table, if any.
fn requested_actions(requests: &[(String, Value)]) -> BTreeSet<(String, Option<String>)> {
    let action_of = |(action, body): &(String, Value)| {
        let table = body["TableName"].as_str().map(str::to_owned);
        let service = match table {
            Some(_) => "dynamodb",
            None => "secretsmanager",
        };
        (format!("{service}:{action}"), table)
    };
    requests.iter().map(action_of).collect()
}

/// Returns the requests to AWS of a toolbox with the template's variables: for a call that
/// succeeds, one that may be retried, and a grant that is created, used and refreshed.
async fn requests_of_the_toolbox() -> Vec<(String, Value)> {
    const KEY: [(&str, &str); 1] = [("oxp-api-key", "the-key-of-today")];
    let emulator = Emulator::start().await;
    let proxy = emulator.proxy().await;
    for (name, value) in [
        ("TOOLS_API_KEY", KEY[0].1),
        ("TOOLS_GOOGLE_CLIENT_SECRET", "toolbox-secret"),
        ("TOOLS_OAUTH_KEY", "a-key-of-this-server-0123456789abcdef"),
        ("TWILIO_API_KEY", TWILIO_KEY),
    ] {
        proxy.put_secret(&format!("stack/{name}"), value).await;
    }
    for table in ["Calls", "Grants"] {
        proxy.create_table(table).await;
    }
    let openid = OpenId::with(&[("ACCESS_TOKEN_TTL", "1")]);
    let stub = Stub::start().await;
    let variables = environment(&[
        ("TOOLS_AUTH", "api-key"),
        ("TOOLS_OAUTH_TABLE", "Grants"),
        ("TOOLS_GOOGLE_CLIENT_ID", "toolbox"),
        ("TOOLS_IDEMPOTENCY", "dynamodb"),
        ("TOOLS_IDEMPOTENCY_TABLE", "Calls"),
        ("TOOLS_QUOTAS", "caller=60/minute"),
        ("TOOLS_SECRETS", "secrets-manager"),
        ("TOOLS_SECRETS_PREFIX", "stack/"),
    ]);
    let (_running, url) = Running::serving(
        toolbox()
            .envs(variables)
            .env("AWS_ENDPOINT_URL", proxy.url())
            .envs(CREDENTIALS)
            .env("TOOLS_GOOGLE_ISSUER", &openid.url)
            .env("GMAIL_URL", stub.url())
            .env("TWILIO_URL", stub.url()),
    );
    openid.allow_redirects_to(&url).await;
    let call = async |body: Value| -> Value {
        let request = reqwest::Client::new().post(format!("{url}/tools/call"));
        let request = request.header(KEY[0].0, KEY[0].1);
        let sent = request.body(body.to_string()).send();
        sent.await.unwrap().json().await.unwrap()
    };
    for (to, works) in [("+15005550010", true), ("+15005550429", false)] {
        let input = serde_json::json!({"to": to, "message": "Hi"});
        let body = serde_json::json!({"tool_id": "SMS.Send", "call_id": to, "input": input});
        let answer = call(body).await;
        assert_eq!(answer["success"], works, "{answer}");
    }
    let emails =
        serde_json::json!({"tool_id": "Gmail.GetEmails", "context": {"user_id": "user-1"}});
    let missing = call(emails.clone()).await;
    let challenge_url = missing["missing_requirements"]["authorization"][0]["url"].as_str();
    let challenge_url = challenge_url.unwrap_or_else(|| panic!("{missing}"));
    let page = Browser::of("alice").follow(challenge_url, Act::Allow).await;
    assert!(page.body.contains("Done"), "{page:?}");
    for _ in 0..2 {
        assert_eq!(call(emails.clone()).await["success"], true);
        // Until the token expires.
        tokio::time::sleep(Duration::from_millis(1100)).await;
    }
    assert_eq!(openid.token_requests("refresh_token").await.1, 0);
    proxy.take_requests()
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs moto, oidc-provider and aws-sam-translator; run tests/all"]
async fn the_toolbox_needs_exactly_the_actions_that_its_role_allows() {
    let requests = requests_of_the_toolbox().await;
    // The toolbox has no tasks.
    let parameters = [
        ("GoogleClientId", "1234.apps.googleusercontent.com"),
        ("Quotas", "caller=60/minute"),
    ];
    let without_tasks = template().resources(&parameters);
    let allowed = actions_of(&without_tasks["ToolboxRole"]["Properties"]).into_iter();
    // The other actions are used by Lambda itself.
    let by_the_code = ["secretsmanager:", "dynamodb:"];
    let allowed =
        allowed.filter(|(it, _)| by_the_code.iter().any(|service| it.starts_with(service)));
    let allowed = allowed.map(|(action, resource)| {
        let of = |name: &&str| resource.contains(&format!("[\"{name}\",\"Arn\"]"));
        let table = ["Calls", "Grants"].into_iter().find(of);
        (action, table.map(str::to_owned))
    });
    let mut allowed: BTreeSet<_> = allowed.collect();
    // BatchGetSecretValue reads what GetSecretValue is allowed to read.
    assert!(allowed.remove(&("secretsmanager:GetSecretValue".into(), None)));
    assert_eq!(requested_actions(&requests), allowed);

    for (action, body) in requests {
        if action != "PutItem" {
            continue;
        }
        let name = body["TableName"].as_str().unwrap();
        let table = resources("AWS::DynamoDB::Table")[name];
        let expiry = table["TimeToLiveSpecification"]["AttributeName"].as_str();
        let item = &body["Item"];
        assert!(item["id"]["S"].is_string(), "{name}: {item}");
        assert!(item[expiry.unwrap()]["N"].is_string(), "{name}: {item}");
    }
}

#[test]
#[ignore = "needs aws-sam-translator; run tests/all"]
fn roles_allow_the_documented_actions() {
    let roles = resources("AWS::IAM::Role");
    let mut documented: BTreeMap<&str, Names> = BTreeMap::new();
    for row in table("action") {
        let roles = match &*row[2] {
            "both" => vec!["HelloRole", "ToolboxRole"],
            "toolbox" => vec!["ToolboxRole"],
            "gateway" => vec!["GatewayRole"],
            "deployment" => vec!["DeploymentRole"],
            other => panic!("{other}"),
        };
        for role in roles {
            let names = documented.entry(role).or_default();
            names.extend(quoted(&row[0]));
        }
    }
    for (role, properties) in roles {
        assert_eq!(properties.get("ManagedPolicyArns"), None, "{role}");
        let mut allowed = actions_of(properties);
        for policy in resources("AWS::IAM::Policy").into_values() {
            if policy["Roles"] == serde_json::json!([{"Ref": role}]) {
                allowed.extend(actions_of(&serde_json::json!({"Policies": [policy]})));
            }
        }
        let names: Names = allowed.iter().map(|(action, _)| action.clone()).collect();
        // Functions that are added later need not be in the table.
        if let Some(documented) = documented.remove(role) {
            assert_eq!(names, documented, "{role}");
        }
        for (action, resource) in allowed {
            let on_all = [
                "secretsmanager:BatchGetSecretValue",
                "cloudwatch:DescribeAlarms",
                "xray:",
                "ec2:",
            ];
            let is_on_all = on_all.iter().any(|it| action.starts_with(it));
            assert_eq!(resource == "\"*\"", is_on_all, "{role}: {action}");
        }
    }
    assert!(documented.is_empty(), "no such roles: {documented:?}");
}

/// Those that the template generates, and those that do not exist yet.
#[test]
#[ignore = "needs aws-sam-translator; run tests/all"]
fn the_toolbox_may_read_the_secrets_of_its_stack_and_no_others() {
    let role = resources("AWS::IAM::Role")["ToolboxRole"];
    let actions = actions_of(role).into_iter();
    let readable = actions.filter(|(action, _)| action == "secretsmanager:GetSecretValue");
    let stack = "${AWS::Partition}:secretsmanager:${AWS::Region}:${AWS::AccountId}:secret:\
                 ${AWS::StackName}/*";
    let stack = serde_json::json!({"Fn::Sub": format!("arn:{stack}")}).to_string();
    assert_eq!(readable.map(|it| it.1).collect::<Vec<_>>(), [stack]);
    let variables = &function("Toolbox")["Environment"]["Variables"];
    let prefix = serde_json::json!({"Fn::Sub": "${AWS::StackName}/"});
    assert_eq!(variables["TOOLS_SECRETS_PREFIX"], prefix);
    for (name, secret) in resources("AWS::SecretsManager::Secret") {
        let id = secret["Name"]["Fn::Sub"].as_str().unwrap();
        assert!(id.starts_with("${AWS::StackName}/TOOLS_"), "{name}");
    }
}

#[test]
#[ignore = "needs aws-sam-translator; run tests/all"]
fn tables_have_the_properties_that_the_store_needs() {
    let tables = resources("AWS::DynamoDB::Table");
    assert_eq!(tables.keys().collect::<Vec<_>>(), [&"Calls", &"Grants"]);
    for (name, table) in tables {
        let keys = serde_json::json!([{"AttributeName": "id", "KeyType": "HASH"}]);
        assert_eq!(table["KeySchema"], keys, "{name}");
        let kinds = serde_json::json!([{"AttributeName": "id", "AttributeType": "S"}]);
        assert_eq!(table["AttributeDefinitions"], kinds, "{name}");
        let expiry = &table["TimeToLiveSpecification"];
        assert_eq!(expiry["Enabled"], true, "{name}");
        assert_eq!(table["BillingMode"], "PAY_PER_REQUEST", "{name}");
        // Records that are kept for an hour need no backup.
        let backups = &table["PointInTimeRecoverySpecification"];
        let has_backups = backups["PointInTimeRecoveryEnabled"] == true;
        assert_eq!(has_backups, name == "Grants");
    }
    for (value, is_protected) in [("yes", true), ("no", false)] {
        let parameters = with_github(&[("Auth", "sign-in"), ("ProtectGrants", value)]);
        let resources = template().resources(&parameters);
        let protection = |table: &str| {
            resources[table]["Properties"]
                .get("DeletionProtectionEnabled")
                .cloned()
        };
        assert_eq!(protection("Grants"), Some(is_protected.into()));
        assert_eq!(protection("Calls"), None);
    }
}

#[test]
#[ignore = "needs aws-sam-translator; run tests/all"]
fn variables_are_known_and_documented() {
    // Another test compares this page with the variables that the library reads.
    let page = fs::read_to_string(repository("docs/environment.md")).unwrap();
    let known: Names = quoted(&page).into_iter().collect();
    let mut documented: BTreeMap<&str, Names> = BTreeMap::new();
    let rows = table("variable");
    for row in rows.into_iter().filter(|row| row.len() == 3) {
        let functions = match &*row[1] {
            "both" => vec!["Hello", "Toolbox"],
            "toolbox" => vec!["Toolbox"],
            other => panic!("{other}"),
        };
        for function in functions {
            let names = documented.entry(function).or_default();
            names.extend(quoted(&row[0]));
        }
    }
    for (name, properties) in resources("AWS::Lambda::Function") {
        let set = variables_of(properties);
        // Functions that are added later need not be in the table.
        if let Some(documented) = documented.remove(name) {
            assert_eq!(set, documented, "{name}");
        }
        // Variables of the runtime and the allocator: tests run functions with the same.
        let runtime = RUNTIME.map(|(name, value)| {
            assert_eq!(properties["Environment"]["Variables"][name], value);
            name
        });
        let unknown: Vec<_> = set
            .iter()
            .filter(|it| !known.contains(*it) && !runtime.contains(&&***it))
            // The secret of figma's tools.
            .filter(|it| ***it != *"FIGMA_TOKEN")
            // The page has one of these, and the names of the other providers.
            .filter(|it| {
                let provider = it.strip_prefix("TOOLS_");
                let provider = provider.and_then(|it| it.strip_suffix("_CLIENT_ID"));
                !provider.is_some_and(|it| known.contains(it))
            })
            .collect();
        assert!(
            unknown.is_empty(),
            "{name} sets unknown variables: {unknown:?}"
        );
    }
    assert!(documented.is_empty(), "no such functions: {documented:?}");
}

#[test]
#[ignore = "needs aws-sam-translator; run tests/all"]
fn every_parameter_is_documented_with_its_default() {
    let mut documented = BTreeMap::new();
    for row in table("parameter") {
        let names = quoted(&row[0]).into_iter();
        let defaults = row[1].split(", ").map(|it| it.trim_matches('`').to_owned());
        let mut defaults = defaults.filter(|it| !it.is_empty());
        for name in names {
            let has_default = !template().default_of(&name).is_empty();
            let default = has_default.then(|| defaults.next()).flatten();
            documented.insert(name, default.unwrap_or_default());
        }
        assert_eq!(defaults.next(), None, "{}", row[0]);
    }
    let parameters = template().json["Parameters"].as_object().unwrap().keys();
    let actual = parameters.map(|name| (name.clone(), template().default_of(name).to_owned()));
    assert_eq!(documented, actual.collect());
}

#[test]
#[ignore = "needs aws-sam-translator; run tests/all"]
fn the_librarys_limit_comes_before_the_platforms() {
    let integration = resources("AWS::ApiGatewayV2::Integration")["ToolboxIntegration"];
    let gateway = integration["TimeoutInMillis"].as_f64().unwrap() / 1000.0;
    let rows = table("limit");
    let seconds = |name: &str| -> f64 {
        let row = rows.iter().find(|row| row[0].starts_with(name));
        row.unwrap()[1].parse().unwrap()
    };
    let resources = template().resources(&[("DeployHello", "yes")]);
    for name in ["Hello", "Toolbox"] {
        let timeout = resources[name]["Properties"]["Timeout"].as_f64().unwrap();
        assert!((timeout - seconds("the function")).abs() < 0.001);
        let ours = timeout + seconds("starting") + seconds("getting ready");
        assert!(ours < gateway.min(29.0), "{ours} s and {gateway} s");
    }
    assert!((seconds("a tool") - lambda_tools::DEFAULT_TIMEOUT.as_secs_f64()).abs() < 0.001);
}

#[test]
#[ignore = "needs aws-sam-translator; run tests/all"]
fn every_function_has_alarms_and_a_log() {
    let template = fs::read_to_string(repository("template.yaml")).unwrap();
    for folder in fs::read_dir(repository("functions")).unwrap() {
        let name = folder.unwrap().file_name().into_string().unwrap();
        assert!(
            template.contains(&format!("Binary: {name}\n")),
            "functions/{name} is not in template.yaml; copy hello's entries there, with \
             `Binary: {name}`"
        );
    }
    let alarms = resources("AWS::CloudWatch::Alarm");
    for (name, properties) in resources("AWS::Lambda::Function") {
        for metric in ["Errors", "Throttles", "Duration"] {
            let is_of = |alarm: &&&Value| {
                alarm["MetricName"] == metric && alarm["Dimensions"].to_string().contains(name)
            };
            assert_eq!(alarms.values().filter(is_of).count(), 1, "{name}: {metric}");
        }
        let log = properties["LoggingConfig"]["LogGroup"]["Ref"]
            .as_str()
            .unwrap();
        assert!(
            resources("AWS::Logs::LogGroup")[log]
                .get("RetentionInDays")
                .is_some()
        );
    }
    let resources = &self::template().json["Resources"];
    // Grants are retained, together with their key.
    for name in ["Grants", "AuthorizationKey"] {
        let [deletion, replacement] =
            ["DeletionPolicy", "UpdateReplacePolicy"].map(|policy| &resources[name][policy]);
        assert_eq!(deletion, "RetainExceptOnCreate", "{name}");
        assert_eq!(replacement, "Retain", "{name}");
    }
    // The template generates a secret, or its owner creates it; it is never a parameter.
    for (name, secret) in self::resources("AWS::SecretsManager::Secret") {
        assert!(secret.get("GenerateSecretString").is_some(), "{name}");
        assert_eq!(secret.get("SecretString"), None, "{name}");
    }
}

#[test]
#[ignore = "needs aws-sam-translator; run tests/all"]
fn each_kind_of_credentials_has_what_it_needs() {
    let kinds = values_of("Auth");
    for combinable in ["oidc", "sign-in"] {
        let combined = format!("api-key,{combinable}");
        assert!(kinds.contains(&combinable) && kinds.contains(&&*combined));
    }
    for kind in kinds {
        let has = |name| kind.split(',').any(|it| it == name);
        // The secrets are generated, and readable, only if they are used.
        let resources = template().resources(&[("Auth", kind)]);
        for (secret, is_used) in [("ApiKey", has("api-key")), ("JwtSecret", has("jwt"))] {
            assert_eq!(resources.contains_key(secret), is_used, "{kind}: {secret}");
        }
        for (issuers, is_valid) in [("", !has("oidc")), ("https://id.example", true)] {
            let parameters = [("Auth", kind), ("OidcIssuers", issuers)];
            let parameters = [&parameters[..], &AUTHORIZER].concat();
            let parameters = with_github(&parameters);
            let is_accepted = template().accepts(&parameters);
            assert_eq!(is_accepted, is_valid, "{kind}: {issuers}");
        }
        let without_provider = [("Auth", kind), ("OidcIssuers", "https://id.example")];
        let is_accepted = template().accepts(&without_provider);
        assert_eq!(is_accepted, !has("sign-in") && !has("gateway"), "{kind}");
    }
}

/// The parameters that `Auth=gateway` requires.
const AUTHORIZER: [(&str, &str); 2] = [
    ("AuthorizerIssuer", "https://id.example"),
    ("AuthorizerAudiences", "api://tools,tools"),
];

/// An HTTP API checks access tokens by itself, and the toolbox refuses what it has not checked.
#[test]
#[ignore = "needs aws-sam-translator; run tests/all"]
fn an_authorizer_of_the_api_checks_every_route_but_those_of_browsers() {
    let with = [&[("Auth", "gateway")], &AUTHORIZER[..]].concat();
    assert!(template().accepts(&with));
    for missing in ["AuthorizerIssuer", "AuthorizerAudiences"] {
        let mut incomplete = with.clone();
        incomplete.retain(|(name, _)| *name != missing);
        assert!(!template().accepts(&incomplete), "{missing}");
    }
    assert!(!template().accepts(&[&with[..], &[("Access", "function-url")]].concat()));

    let provider = ("GoogleClientId", "1234.apps.googleusercontent.com");
    let resources = template().resources(&[&with[..], &[provider, ("Explorer", "yes")]].concat());
    let authorizer = &resources["ToolboxAuthorizer"]["Properties"];
    assert_eq!(authorizer["AuthorizerType"], "JWT");
    let expected =
        serde_json::json!({"Issuer": "https://id.example", "Audience": ["api://tools", "tools"]});
    assert_eq!(authorizer["JwtConfiguration"], expected);
    let routes = of_type(&resources, "AWS::ApiGatewayV2::Route");
    assert_eq!(routes.len(), 5);
    for (name, route) in routes {
        let key = route["RouteKey"].as_str().unwrap();
        let is_open = key.contains("/authorization/");
        let kind = if is_open { "NONE" } else { "JWT" };
        assert_eq!(route["AuthorizationType"], kind, "{name}");
        let authorizer = (!is_open).then(|| serde_json::json!({"Ref": "ToolboxAuthorizer"}));
        assert_eq!(route.get("AuthorizerId"), authorizer.as_ref(), "{name}");
    }
    let variables = &resources["Toolbox"]["Properties"]["Environment"]["Variables"];
    assert_eq!(variables["TOOLS_AUTH"], "gateway");
    for kind in values_of("Auth").into_iter().filter(|it| *it != "gateway") {
        let resources = template().resources(&[&[("Auth", kind)], &AUTHORIZER[..]].concat());
        assert!(!resources.contains_key("ToolboxAuthorizer"), "{kind}");
    }
}

/// Returns these parameters, and those with which people sign in at GitHub.
fn with_github<'a>(parameters: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    let github = [
        ("SignInProvider", "github"),
        ("SignInClientId", "toolbox"),
        ("SignInAllow", "organization:acme"),
    ];
    [parameters, &github].concat()
}

/// Every provider needs a client and a rule, and some also their URL.
#[test]
#[ignore = "needs aws-sam-translator; run tests/all"]
fn sign_in_names_a_provider_a_client_and_who_may_sign_in() {
    let issuer = ("SignInIssuer", "https://id.example");
    for auth in ["sign-in", "api-key,sign-in"] {
        for provider in values_of("SignInProvider") {
            let needs_issuer = !["github", "google"].contains(&provider);
            let complete = [
                ("Auth", auth),
                ("SignInProvider", provider),
                ("SignInClientId", "toolbox"),
                ("SignInAllow", "anyone"),
            ];
            let with_issuer = [&complete[..], &[issuer]].concat();
            let is_named = !provider.is_empty();
            assert_eq!(template().accepts(&with_issuer), is_named, "{provider}");
            let is_accepted = template().accepts(&complete);
            assert_eq!(is_accepted, is_named && !needs_issuer, "{provider}");
            for missing in ["SignInClientId", "SignInAllow"] {
                let mut incomplete = with_issuer.clone();
                incomplete.retain(|(name, _)| *name != missing);
                assert!(!template().accepts(&incomplete), "{provider}: {missing}");
            }
            // One provider cannot be there twice, for people and for tools.
            for (parameter, of) in [
                ("GoogleClientId", "google"),
                ("GitHubClientId", "github"),
                ("MicrosoftClientId", "microsoft"),
                ("SlackClientId", "slack"),
            ] {
                let both = [&with_issuer[..], &[(parameter, "client")]].concat();
                let is_accepted = template().accepts(&both);
                assert_eq!(is_accepted, is_named && provider != of, "{provider} {of}");
            }
        }
    }
}

/// Sign-in keeps its sessions in the table of grants, and its clients may be pages of any origin.
#[test]
#[ignore = "needs aws-sam-translator; run tests/all"]
fn sign_in_has_a_table_a_key_and_its_secret_without_google() {
    let origin = "https://app.example.com";
    for auth in values_of("Auth") {
        let is_signed_in = auth.contains("sign-in");
        for access in values_of("Access") {
            for cors in ["", origin] {
                let context = format!("{auth} {access} {cors}");
                let parameters = [("Auth", auth), ("Access", access), ("CorsOrigin", cors)];
                let resources = template().resources(&with_github(&parameters));
                for name in ["Grants", "AuthorizationKey"] {
                    let exists = resources.contains_key(name);
                    assert_eq!(exists, is_signed_in, "{context}: {name}");
                }
                let toolbox = &resources["Toolbox"]["Properties"];
                let variables = &toolbox["Environment"]["Variables"];
                let table = is_signed_in.then(|| serde_json::json!({"Ref": "Grants"}));
                assert_eq!(variables.get("TOOLS_OAUTH_TABLE"), table.as_ref());
                assert_eq!(variables["TOOLS_GOOGLE_CLIENT_ID"], "");
                let role = resources["ToolboxRole"].to_string();
                let is_allowed = role.contains(r#"["Grants","Arn"]"#);
                assert_eq!(is_allowed, is_signed_in, "{context}");

                // The API itself responds to preflight requests, and behind a URL, the toolbox.
                assert_eq!(variables["TOOLS_ALLOWED_ORIGINS"], cors, "{context}");
                let (entry, settings) = match access {
                    "http-api" => ("ToolboxApi", "CorsConfiguration"),
                    _ => ("ToolboxUrl", "Cors"),
                };
                let allowed = match (access, is_signed_in, cors) {
                    ("http-api", true, _) => serde_json::json!(["*"]),
                    ("http-api", _, origin) if !origin.is_empty() => serde_json::json!([origin]),
                    _ => Value::Null,
                };
                let origins = &resources[entry]["Properties"][settings]["AllowOrigins"];
                assert_eq!(*origins, allowed, "{context}");
            }
        }
    }
}

#[test]
#[ignore = "needs aws-sam-translator; run tests/all"]
fn a_gateway_invokes_the_toolbox_and_reads_its_list_of_tools() {
    let list = "s3://bucket/tools-1.json";
    assert!(!template().accepts(&[("Gateway", "yes")]));
    for access in values_of("Access") {
        let with = [
            ("Access", access),
            ("Gateway", "yes"),
            ("GatewayToolSchema", list),
        ];
        assert!(template().accepts(&with));
        let without = template().resources(&with[..1]);
        let all = template().resources(&with);
        for name in ["ToolboxGateway", "ToolboxTarget", "GatewayRole"] {
            assert!(!without.contains_key(name), "{name}");
        }
        let target = &all["ToolboxTarget"]["Properties"];
        let lambda = &target["TargetConfiguration"]["Mcp"]["Lambda"];
        let arn = serde_json::json!({"Ref": "ToolboxAliaslive"});
        assert_eq!(lambda["LambdaArn"], arn);
        assert_eq!(lambda["ToolSchema"]["S3"]["Uri"], list);
        let gateway = &all["ToolboxGateway"]["Properties"];
        assert_eq!(gateway["AuthorizerType"], "AWS_IAM");
        let role = &all["GatewayRole"]["Properties"];
        let mut actions = actions_of(role);
        let (action, resource) = actions.remove(0);
        assert_eq!(action, "lambda:InvokeFunction");
        assert_eq!(resource, arn.to_string());
        let (action, resource) = actions.remove(0);
        assert_eq!(action, "s3:GetObject");
        assert!(
            resource.contains(r#"{"Fn::Select":[1,["","bucket/tools-1.json"]]}"#),
            "{resource}"
        );
        assert!(actions.is_empty());
        let trust = &role["AssumeRolePolicyDocument"]["Statement"];
        assert_eq!(trust.as_array().unwrap().len(), 1);
        let service = &trust[0]["Principal"]["Service"];
        assert_eq!(service, "bedrock-agentcore.amazonaws.com");
        // Only for gateways of this account and region: no other resource of the service may use it.
        let condition = &trust[0]["Condition"];
        let account = serde_json::json!({"Ref": "AWS::AccountId"});
        assert_eq!(condition["StringEquals"]["aws:SourceAccount"], account);
        let source = condition["ArnLike"]["aws:SourceArn"].to_string();
        let place = "bedrock-agentcore:${AWS::Region}:${AWS::AccountId}:gateway/*";
        assert!(source.contains(place), "{source}");
    }
}

/// A function accepts what reaches it, and nothing else.
#[test]
#[ignore = "needs aws-sam-translator; run tests/all"]
fn the_functions_accept_the_events_that_are_sent_to_them() {
    for access in values_of("Access") {
        for gateway in values_of("Gateway") {
            for direct in values_of("DirectCalls") {
                let parameters = [
                    ("Access", access),
                    ("Gateway", gateway),
                    ("DirectCalls", direct),
                    ("DeployHello", "yes"),
                    ("DeployFigma", "yes"),
                ];
                let resources = template().resources(&parameters);
                let mut expected = vec![];
                if resources.contains_key("ApiCallsToolbox") {
                    expected.push("http-api");
                }
                if resources.contains_key("ToolboxUrl") {
                    expected.push("function-url");
                }
                expected.push("warm-up");
                if resources.contains_key("ToolboxTarget") {
                    expected.push("agentcore");
                }
                if direct != "no" {
                    expected.push(direct);
                }
                for (function, expected) in [
                    ("Toolbox", expected.join(",")),
                    ("Hello", "function-url,warm-up".to_owned()),
                    ("Figma", "function-url,warm-up".to_owned()),
                ] {
                    let variables = &resources[function]["Properties"]["Environment"]["Variables"];
                    assert_eq!(variables["TOOLS_EVENTS"], expected, "{parameters:?}");
                }
            }
        }
    }
}

/// Whoever calls the toolbox calls the alias, so that deployments can shift calls, and be undone.
#[test]
#[ignore = "needs aws-sam-translator; run tests/all"]
fn all_calls_go_through_the_alias() {
    let alias = serde_json::json!({"Ref": "ToolboxAliaslive"});
    for access in values_of("Access") {
        let parameters = [
            ("Access", access),
            ("Gateway", "yes"),
            ("GatewayToolSchema", "s3://bucket/tools-1.json"),
            ("DirectCalls", "direct"),
        ];
        let resources = template().resources(&parameters);
        let of = |name: &str, path: &str| {
            let resource = resources.get(name)?;
            Some(
                resource
                    .pointer(&format!("/Properties/{path}"))
                    .unwrap()
                    .clone(),
            )
        };
        let targets = [
            of("ToolboxIntegration", "IntegrationUri"),
            of("ApiCallsToolbox", "FunctionName"),
            of("ToolboxUrl", "TargetFunctionArn"),
            of("EverybodyCallsUrl", "FunctionName"),
            of("UrlCallsToolbox", "FunctionName"),
            of("ToolboxTarget", "TargetConfiguration/Mcp/Lambda/LambdaArn"),
            of(
                "GatewayRole",
                "Policies/0/PolicyDocument/Statement/0/Resource",
            ),
        ];
        let targets: Vec<_> = targets.into_iter().flatten().collect();
        let is_api = access == "http-api";
        assert_eq!(targets, vec![alias.clone(); if is_api { 4 } else { 5 }]);
        assert_eq!(of("ToolboxDirectCalls", "Qualifier").unwrap(), "live");
        assert_eq!(of("ToolboxAliaslive", "Name").unwrap(), "live");
    }
    assert_eq!(template().json["Outputs"]["ToolboxAlias"]["Value"], alias);
}

/// A gradual deployment ends, and is undone, if one of the alarms goes off that a bad version sets
/// off.
#[test]
#[ignore = "needs aws-sam-translator; run tests/all"]
fn gradual_deployments_have_alarms() {
    let kinds = values_of("Deployment");
    let sets: Vec<_> = kinds
        .iter()
        .map(|kind| vec![("Deployment", *kind)])
        .collect();
    let templates = Template::transform_each(&repository("template.yaml"), &sets);
    for ((kind, set), template) in kinds.iter().zip(&sets).zip(&templates) {
        let resources = template.resources(set);
        let alias = &resources["ToolboxAliaslive"];
        // Another version replaces it, which CloudFormation would delete.
        let is_version = |it: &&&str| it.starts_with("ToolboxVersion");
        let version = resources.keys().find(is_version).unwrap();
        for policy in ["DeletionPolicy", "UpdateReplacePolicy"] {
            assert_eq!(resources[version][policy], "Retain", "{policy}");
        }
        let configuration = match *kind {
            "all-at-once" => {
                assert_eq!(alias.get("UpdatePolicy"), None);
                for name in ["DeploymentRole", "ToolboxDeploymentGroup"] {
                    assert!(!resources.contains_key(name), "{name}");
                }
                continue;
            }
            "canary" => "Canary10Percent5Minutes",
            "linear" => "Linear10PercentEvery1Minute",
            other => panic!("{other}"),
        };
        let policy = &alias["UpdatePolicy"]["CodeDeployLambdaAliasUpdate"];
        let group = serde_json::json!({"Ref": "ToolboxDeploymentGroup"});
        assert_eq!(policy["DeploymentGroupName"], group);
        let group = &resources["ToolboxDeploymentGroup"]["Properties"];
        let name = &group["DeploymentConfigName"]["Fn::Sub"];
        assert_eq!(name[0], "CodeDeployDefault.Lambda${ConfigName}");
        assert_eq!(name[1]["ConfigName"], configuration);
        let role = serde_json::json!({"Fn::GetAtt": ["DeploymentRole", "Arn"]});
        assert_eq!(group["ServiceRoleArn"], role);
        assert_eq!(group["AutoRollbackConfiguration"]["Enabled"], true);
        assert!(!resources.contains_key("CodeDeployServiceRole"));
        for (parameters, expected) in [
            (
                vec![],
                vec!["ToolboxErrors", "ToolboxLoggedErrors", "ApiErrors"],
            ),
            (
                vec![
                    ("Access", "function-url"),
                    ("LogLevel", "WARN"),
                    ("Metrics", "none"),
                ],
                vec!["ToolboxErrors", "ToolboxLoggedErrors", "UrlErrors"],
            ),
        ] {
            let group = template
                .resource("ToolboxDeploymentGroup", &parameters)
                .unwrap();
            let alarms = &group["Properties"]["AlarmConfiguration"]["Alarms"];
            let names = alarms.as_array().unwrap().iter();
            let names = names.filter_map(|it| it["Name"]["Ref"].as_str());
            assert_eq!(names.collect::<Vec<_>>(), expected);
        }
    }
}

/// The API keeps requests away that are too many, and says what became of those that did not reach
/// the toolbox.
#[test]
#[ignore = "needs aws-sam-translator; run tests/all"]
fn the_stage_has_limits_and_a_log_without_personal_data() {
    for (log, exists) in [("yes", true), ("no", false)] {
        let parameters = [("ApiRate", "7.5"), ("ApiBurst", "9"), ("ApiAccessLog", log)];
        let resources = template().resources(&parameters);
        let stage = &resources["ToolboxStage"]["Properties"];
        let limits = serde_json::json!({"ThrottlingRateLimit": "7.5", "ThrottlingBurstLimit": "9"});
        assert_eq!(stage["DefaultRouteSettings"], limits);
        assert_eq!(resources.contains_key("ApiLog"), exists);
        let Some(settings) = stage.get("AccessLogSettings") else {
            assert!(!exists);
            continue;
        };
        let arn = serde_json::json!({"Fn::GetAtt": ["ApiLog", "Arn"]});
        assert_eq!(settings["DestinationArn"], arn);
        let format = settings["Format"].as_str().unwrap();
        let fields: BTreeMap<String, String> = serde_json::from_str(format).unwrap();
        // Neither addresses nor paths, which can contain the ids of challenges.
        let allowed = [
            "requestId",
            "requestTime",
            "routeKey",
            "status",
            "responseLatency",
            "responseLength",
            "error.message",
            "authorizer.error",
        ];
        for variable in fields.values() {
            let name = variable.strip_prefix("$context.").unwrap();
            assert!(
                allowed.contains(&name) || name.starts_with("integration."),
                "{name}"
            );
        }
        assert!(fields.values().any(|it| it == "$context.requestId"));
    }
}

/// A customer's key encrypts all that is stored, and the roles may use it.
#[test]
#[ignore = "needs aws-sam-translator; run tests/all"]
fn a_customers_key_encrypts_everything() {
    const KINDS: [(&str, &str); 5] = [
        ("AWS::DynamoDB::Table", "/SSESpecification/KMSMasterKeyId"),
        ("AWS::Logs::LogGroup", "/KmsKeyId"),
        ("AWS::SecretsManager::Secret", "/KmsKeyId"),
        ("AWS::SQS::Queue", "/KmsMasterKeyId"),
        ("AWS::Lambda::Function", "/KmsKeyArn"),
    ];
    let key = "arn:aws:kms:us-east-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab";
    for arn in ["", key] {
        let parameters = with_github(&[
            ("KmsKeyArn", arn),
            ("Auth", "api-key,sign-in"),
            ("DeployHello", "yes"),
            ("DeployFigma", "yes"),
            ("Tasks", "yes"),
        ]);
        let resources = template().resources(&parameters);
        let expected = (!arn.is_empty()).then_some(serde_json::json!(arn));
        for (kind, path) in KINDS {
            let of_kind = of_type(&resources, kind);
            assert!(!of_kind.is_empty());
            for (name, properties) in of_kind {
                assert_eq!(properties.pointer(path), expected.as_ref(), "{name}");
            }
        }
        let queue = &resources["FailedInvocations"]["Properties"];
        assert_eq!(queue.get("SqsManagedSseEnabled").is_some(), arn.is_empty());
        for (role, needed) in [
            ("ToolboxRole", &["kms:Decrypt", "kms:GenerateDataKey"][..]),
            ("HelloRole", &["kms:Decrypt"]),
            ("FigmaRole", &["kms:Decrypt"]),
        ] {
            let actions = actions_of(&resources[role]["Properties"]).into_iter();
            let of_keys: Vec<_> = actions.filter(|(it, _)| it.starts_with("kms:")).collect();
            let on_key = |action: &&str| ((*action).to_owned(), format!("\"{arn}\""));
            let expected: Vec<_> = needed.iter().map(on_key).collect();
            assert_eq!(
                of_keys,
                if arn.is_empty() { vec![] } else { expected },
                "{role}"
            );
        }
    }
}

/// The examples cost nothing unless they are wanted.
#[test]
#[ignore = "needs aws-sam-translator; run tests/all"]
fn only_the_toolbox_is_deployed_by_default() {
    for (hello, figma) in [("no", "no"), ("yes", "no"), ("no", "yes"), ("yes", "yes")] {
        let parameters = [("DeployHello", hello), ("DeployFigma", figma)];
        let resources = template().resources(&parameters);
        for (function, is_deployed) in [("Hello", hello == "yes"), ("Figma", figma == "yes")] {
            let all = template().json["Resources"].as_object().unwrap().keys();
            for name in all.filter(|it| it.starts_with(function)) {
                assert_eq!(resources.contains_key(&**name), is_deployed, "{name}");
            }
            for (name, output) in template().json["Outputs"].as_object().unwrap() {
                let is_its = output["Condition"] == format!("Has{function}");
                assert_eq!(is_its, name.starts_with(function), "{name}");
            }
        }
        let functions = of_type(&resources, "AWS::Lambda::Function").len();
        assert_eq!(
            functions,
            1 + [hello, figma].iter().filter(|it| **it == "yes").count()
        );
    }
    // A new account has few concurrent executions, of which none can be reserved.
    let resources = template().resources(&[]);
    let reserved = resources["Toolbox"]["Properties"].get("ReservedConcurrentExecutions");
    assert_eq!(reserved, None);
    let resources = template().resources(&[("ToolboxReservedConcurrency", "20")]);
    assert_eq!(
        resources["Toolbox"]["Properties"]["ReservedConcurrentExecutions"],
        "20"
    );
}

/// The parameters for calls that take longer than a request, or report their progress, each with the
/// others that matter to them.
fn long_calls() -> Vec<Vec<(&'static str, &'static str)>> {
    let mut all = Vec::new();
    for tasks in values_of("Tasks") {
        for streaming in values_of("Streaming") {
            for access in values_of("Access") {
                for (subnets, groups) in [("", ""), ("subnet-01234567", "sg-01234567")] {
                    all.push(vec![
                        ("Tasks", tasks),
                        ("Streaming", streaming),
                        ("Access", access),
                        ("SubnetIds", subnets),
                        ("SecurityGroupIds", groups),
                    ]);
                }
            }
        }
    }
    all
}

/// The toolbox invokes itself, and knows its tasks again; what is never done is found.
#[test]
#[ignore = "needs aws-sam-translator; run tests/all"]
fn tasks_have_what_they_need_if_there_are_any() {
    const OF_TASKS: [&str; 5] = [
        "ToolboxInvokesItself",
        "ToolboxTasks",
        "FailedInvocations",
        "InvocationsFailed",
        "InvocationsDropped",
    ];
    let arn = |name: &str| serde_json::json!({"Fn::GetAtt": [name, "Arn"]});
    for parameters in long_calls() {
        let has_tasks = parameters[0] == ("Tasks", "yes");
        let examples = [("DeployHello", "yes"), ("DeployFigma", "yes")];
        let resources = template().resources(&[&parameters[..], &examples].concat());
        let properties = |name: &str| &resources[name]["Properties"];
        for name in OF_TASKS {
            let exists = resources.contains_key(name);
            assert_eq!(exists, has_tasks, "{parameters:?}: {name}");
        }
        let limits = ["Toolbox", "Hello", "Figma"].map(|name| &properties(name)["Timeout"]);
        assert_eq!(limits, [if has_tasks { 900 } else { 23 }, 23, 23]);
        let nearly = properties("ToolboxDuration")["Threshold"].as_f64().unwrap();
        let nearly = nearly / 1000.0 / limits[0].as_f64().unwrap();
        assert!((0.85..0.95).contains(&nearly), "{nearly}");

        let role = actions_of(properties("ToolboxRole"));
        let for_tasks = [
            ("dynamodb:GetItem", arn("Calls")),
            ("sqs:SendMessage", arn("FailedInvocations")),
        ];
        for (action, resource) in for_tasks {
            let needed = (action.to_owned(), resource.to_string());
            assert_eq!(role.contains(&needed), has_tasks, "{action}");
        }
        let toolbox = &properties("Toolbox")["Environment"]["Variables"];
        assert_eq!(toolbox["TOOLS_IDEMPOTENCY"], "dynamodb");
        let table = &toolbox["TOOLS_IDEMPOTENCY_TABLE"];
        assert_eq!(*table, serde_json::json!({"Ref": "Calls"}));
        assert!(resources.contains_key("Calls"));
        if !has_tasks {
            continue;
        }

        let policy = serde_json::json!({"Policies": [properties("ToolboxInvokesItself")]});
        let versions = serde_json::json!({"Fn::Sub": "${Toolbox.Arn}:*"});
        let itself = serde_json::json!([arn("Toolbox"), versions]).to_string();
        assert_eq!(
            actions_of(&policy),
            [("lambda:InvokeFunction".into(), itself)]
        );
        // In the role, the policy would need a toolbox that needs the role.
        let role = properties("ToolboxRole").to_string();
        assert!(!role.contains(r#""Toolbox""#) && !role.contains("${Toolbox."));

        let invocations = properties("ToolboxTasks");
        let function = serde_json::json!({"Ref": "Toolbox"});
        assert_eq!(invocations["FunctionName"], function);
        let alias = properties("ToolboxAliaslive");
        assert_eq!(invocations["Qualifier"], alias["FunctionVersion"]);
        assert_eq!(invocations["MaximumRetryAttempts"], 0);
        // A unit test compares it with the code.
        assert_eq!(invocations["MaximumEventAgeInSeconds"], 300);
        let failed = &invocations["DestinationConfig"]["OnFailure"]["Destination"];
        assert_eq!(*failed, arn("FailedInvocations"));
        let queue = properties("FailedInvocations");
        assert_eq!(queue["SqsManagedSseEnabled"], true);
        assert_eq!(queue["MessageRetentionPeriod"], 14 * 24 * 60 * 60);
    }
}

/// A direct call that nobody waits for must not get lost without a trace.
#[test]
#[ignore = "needs aws-sam-translator; run tests/all"]
fn direct_calls_that_fail_are_kept() {
    for direct in values_of("DirectCalls") {
        let resources = template().resources(&[("DirectCalls", direct)]);
        for name in [
            "ToolboxDirectCalls",
            "FailedInvocations",
            "InvocationsFailed",
        ] {
            assert_eq!(resources.contains_key(name), direct != "no", "{name}");
        }
        assert!(!resources.contains_key("ToolboxTasks"));
        let role = actions_of(&resources["ToolboxRole"]["Properties"]);
        let sends = role.iter().any(|(action, _)| action == "sqs:SendMessage");
        assert_eq!(sends, direct != "no");
        if direct == "no" {
            continue;
        }
        let configuration = &resources["ToolboxDirectCalls"]["Properties"]["DestinationConfig"];
        let queue = serde_json::json!({"Fn::GetAtt": ["FailedInvocations", "Arn"]});
        assert_eq!(configuration["OnFailure"]["Destination"], queue);
        assert_eq!(
            resources["ToolboxDirectCalls"]["DependsOn"],
            "ToolboxAliaslive"
        );
    }
}

/// A buffered response through a URL that streams cannot be read, nor the other way round.
#[test]
#[ignore = "needs aws-sam-translator; run tests/all"]
fn responses_are_streams_where_the_url_expects_them() {
    let mut streaming = 0;
    for parameters in long_calls() {
        let is_asked = parameters.contains(&("Streaming", "yes"));
        let can_stream = parameters.contains(&("Access", "function-url"))
            && parameters.contains(&("SubnetIds", ""));
        let is_accepted = template().accepts(&parameters);
        assert_eq!(is_accepted, !is_asked || can_stream, "{parameters:?}");

        // Also with parameters that are not accepted.
        let examples = [("DeployHello", "yes"), ("DeployFigma", "yes")];
        let resources = template().resources(&[&parameters[..], &examples].concat());
        let variables = |name: &str| &resources[name]["Properties"]["Environment"]["Variables"];
        let toolbox = variables("Toolbox");
        let kinds = toolbox
            .get("TOOLS_STREAMING")
            .map(|it| it.as_str().unwrap());
        let url = resources.get("ToolboxUrl");
        let mode = url.map(|it| it["Properties"]["InvokeMode"].as_str().unwrap());
        match kinds {
            Some(kinds) => {
                assert_eq!((kinds, mode), ("function-url", Some("RESPONSE_STREAM")));
                assert_eq!(toolbox["TOOLS_EVENTS"], format!("{kinds},warm-up"));
                streaming += 1;
            }
            None => assert!(matches!(mode, None | Some("BUFFERED")), "{parameters:?}"),
        }
        assert_eq!(kinds.is_some(), is_asked && mode.is_some());
        // The other functions' responses are no streams.
        for (function, url) in [("Hello", "HelloUrl"), ("Figma", "FigmaUrl")] {
            assert_eq!(variables(function).get("TOOLS_STREAMING"), None);
            assert_eq!(resources[url]["Properties"].get("InvokeMode"), None);
        }
    }
    assert_eq!(streaming, 4);
    let variables = environment(&[
        ("TOOLS_AUTH", "none"),
        ("TOOLS_EVENTS", "function-url,warm-up"),
        ("TOOLS_STREAMING", "function-url"),
        ("TOOLS_IDEMPOTENCY", "none"),
        ("TOOLS_SECRETS", "none"),
    ]);
    Running::serving(toolbox().envs(variables));
}

/// Returns the values that a parameter allows.
fn values_of(parameter: &str) -> Vec<&'static str> {
    let values = &template().json["Parameters"][parameter]["AllowedValues"];
    let values = values.as_array().unwrap().iter();
    values.map(|it| it.as_str().unwrap()).collect()
}

/// A method and a path.
type Route = (String, String);

fn route(method: &str, url: &str) -> Route {
    let path = url.parse::<reqwest::Url>().unwrap().path().to_owned();
    (method.to_owned(), path)
}

const KEY: &str = "a-key-of-this-server-0123456789abcdef";

/// Returns the routes that the protocols declare: the response for an unknown path lists them.
async fn declared_routes(server: &str) -> Vec<Route> {
    let response = reqwest::get(format!("{server}/unknown")).await.unwrap();
    let unknown: Value = response.json().await.unwrap();
    let text = unknown["developer_message"].as_str().unwrap();
    let words = text.split([' ', ',']).filter(|it| !it.is_empty());
    let words: Vec<_> = words.collect();
    let pairs = words.windows(2).filter(|pair| pair[1].starts_with('/'));
    pairs
        .map(|pair| (pair[0].to_owned(), pair[1].trim_end_matches('.').to_owned()))
        .collect()
}

/// Returns the route of the metadata that a client without credentials is referred to.
async fn metadata_route(server: &str) -> Route {
    let call = reqwest::Client::new().post(format!("{server}/mcp")).send();
    let call = call.await.unwrap();
    let sign_in = call.headers()["www-authenticate"].to_str().unwrap();
    let (_, url) = sign_in.split_once("resource_metadata=\"").unwrap();
    route("GET", url.split_once('"').unwrap().0)
}

/// Returns the routes that a user's browser visits to grant access, and that of the client that
/// waits.
async fn consent_routes(server: &str) -> Vec<Route> {
    let emails =
        serde_json::json!({"tool_id": "Gmail.GetEmails", "context": {"user_id": "user-1"}});
    let call = reqwest::Client::new().post(format!("{server}/tools/call"));
    let call = call.bearer_auth(KEY).body(emails.to_string()).send();
    let missing: Value = call.await.unwrap().json().await.unwrap();
    let challenge = &missing["missing_requirements"]["authorization"][0];
    let [page, check] = ["url", "check_url"].map(|name| challenge[name].as_str().unwrap());
    let browser = Browser::of("alice");
    let consent = browser.get(page).await.body;
    let (_, form) = consent.split_once("<form method=\"").unwrap();
    let method = form.split_once('"').unwrap().0.to_uppercase();
    let provider = &browser.start(page).await.headers["location"];
    let provider: reqwest::Url = provider.parse().unwrap();
    let mut query = provider.query_pairs();
    let (_, callback) = query.find(|(name, _)| name == "redirect_uri").unwrap();
    vec![
        route("GET", check),
        route("GET", page),
        route(&method, page),
        route("GET", &callback),
    ]
}

/// Returns the routes of people who sign in, and of their clients.
async fn sign_in_routes(server: &str) -> Vec<Route> {
    let metadata = "/.well-known/oauth-authorization-server";
    let response = reqwest::get(format!("{server}{metadata}")).await.unwrap();
    let issuer: Value = response.json().await.unwrap();
    let endpoint = |name: &str| issuer[name].as_str().unwrap().to_owned();
    let authorize = endpoint("authorization_endpoint");
    let register = endpoint("registration_endpoint");

    let redirect_uri = "https://client.example/callback";
    let body = serde_json::json!({"redirect_uris": [redirect_uri]}).to_string();
    let registered = reqwest::Client::new().post(&register).body(body).send();
    let registered: Value = registered.await.unwrap().json().await.unwrap();
    let parameters = [
        ("response_type", "code"),
        ("client_id", registered["client_id"].as_str().unwrap()),
        ("redirect_uri", redirect_uri),
        (
            "code_challenge",
            "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM",
        ),
        ("code_challenge_method", "S256"),
    ];
    let page = reqwest::Url::parse_with_params(&authorize, parameters).unwrap();
    let consent = Browser::of("alice").get(page.as_str()).await;
    let form = form_in(&consent.body).unwrap_or_else(|| panic!("{consent:?}"));
    let (cookie, _) = consent.headers["set-cookie"].split_once(';').unwrap();
    let browser = reqwest::Client::builder().redirect(Policy::none()).build();
    let sent = browser.unwrap().post(page).header("cookie", cookie);
    let sent = sent.form(&[("form", form), ("answer", "continue")]).send();
    let sent = sent.await.unwrap();
    let provider = sent.headers()["location"].to_str().unwrap();
    let provider: reqwest::Url = provider.parse().unwrap();
    let mut query = provider.query_pairs();
    let (_, callback) = query.find(|(name, _)| name == "redirect_uri").unwrap();

    let mut routes = vec![
        route("GET", &authorize),
        route("POST", &authorize),
        route("GET", &callback),
        route("POST", &register),
        route("GET", &endpoint("jwks_uri")),
    ];
    let forms = ["token_endpoint", "revocation_endpoint"];
    routes.extend(forms.map(|name| route("POST", &endpoint(name))));
    let openid = "/.well-known/openid-configuration";
    routes.extend([metadata, openid].map(|path| ("GET".into(), path.into())));
    routes
}

/// Returns true if a request needs no AWS credentials, with these resources; `None` if it gets a
/// 404. API Gateway selects the most specific route.
fn is_open(resources: &BTreeMap<&str, Value>, (method, path): &Route) -> Option<bool> {
    if let Some(url) = resources.get("ToolboxUrl") {
        let permissions = ["EverybodyCallsUrl", "UrlCallsToolbox"];
        let is_open = permissions.map(|name| resources.contains_key(name));
        let kind = &url["Properties"]["AuthType"];
        assert_eq!(is_open, [kind == "NONE"; 2], "{kind}");
        return Some(is_open[0]);
    }
    let matches = |key: &str| match key.strip_suffix("{proxy+}") {
        Some(prefix) => path.len() > prefix.len() && path.starts_with(prefix),
        None => path == key,
    };
    let routes = of_type(resources, "AWS::ApiGatewayV2::Route").into_values();
    let routes = routes.filter_map(|it| {
        let (of, key) = it["RouteKey"].as_str().unwrap().split_once(' ').unwrap();
        (of == method && matches(key)).then_some((key.len(), it["AuthorizationType"] == "NONE"))
    });
    Some(routes.max()?.1)
}

/// With `iam`, only the pages for users are open; otherwise, every route is.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs aws-sam-translator; run tests/all"]
async fn clients_and_browsers_reach_the_routes_that_they_need() {
    let (_running, server) = Running::serving(toolbox().envs([
        ("TOOLS_AUTH", "api-key,oidc,sign-in"),
        ("TOOLS_API_KEY", KEY),
        ("TOOLS_OIDC_ISSUERS", "http://127.0.0.1:9"),
        ("TOOLS_SIGN_IN_PROVIDER", "github"),
        ("TOOLS_SIGN_IN_CLIENT_ID", "toolbox"),
        ("TOOLS_SIGN_IN_CLIENT_SECRET", "toolbox-secret"),
        ("TOOLS_SIGN_IN_ALLOW", "organization:acme"),
        ("TOOLS_GOOGLE_CLIENT_ID", "toolbox"),
        ("TOOLS_GOOGLE_CLIENT_SECRET", "toolbox-secret"),
        ("TOOLS_OAUTH_KEY", KEY),
    ]));
    let mut routes = declared_routes(&server).await;
    assert!(routes.contains(&route("GET", "http://tools/health")));
    routes.push(metadata_route(&server).await);
    routes.extend(["/", "/explorer.json"].map(|path| ("GET".into(), path.into())));
    let consent = consent_routes(&server).await;
    routes.extend_from_slice(&consent);
    let sign_in = sign_in_routes(&server).await;
    let (mut wrong, mut count) = (Vec::new(), 0);
    for auth in values_of("Auth") {
        for access in values_of("Access") {
            for client_id in ["", "1234.apps.googleusercontent.com"] {
                let parameters = with_github(&[
                    ("Auth", auth),
                    ("Access", access),
                    ("GoogleClientId", client_id),
                    ("OidcIssuers", "https://id.example"),
                    ("Explorer", "yes"),
                ]);
                let parameters = [&parameters[..], &AUTHORIZER].concat();
                if !template().accepts(&parameters) {
                    continue;
                }
                count += 1;
                let resources = template().resources(&parameters);
                let variables = &resources["Toolbox"]["Properties"]["Environment"]["Variables"];
                // The toolbox checks its callers, or that IAM or the API has done it.
                let by_platform = ["iam", "gateway"].contains(&auth);
                let checks = if by_platform { "gateway" } else { auth };
                assert_eq!(variables["TOOLS_AUTH"], checks);
                for route in &routes {
                    let is_consent = !client_id.is_empty() && consent.contains(route);
                    let expected = Some(!by_platform || is_consent);
                    if is_open(&resources, route) != expected {
                        wrong.push(format!("{auth} {access} {route:?} is not {expected:?}"));
                    }
                }
                if !auth.contains("sign-in") {
                    continue;
                }
                for (method, path) in &sign_in {
                    // An API responds to preflight requests, for which it has no route.
                    let preflight = (access == "function-url").then_some(true);
                    for (method, expected) in [(&**method, Some(true)), ("OPTIONS", preflight)] {
                        let route = (method.to_owned(), path.clone());
                        if is_open(&resources, &route) != expected {
                            wrong.push(format!("{auth} {access} {route:?} is not {expected:?}"));
                        }
                    }
                }
            }
        }
    }
    // All but a function URL that requires AWS credentials of the users' browsers, or an authorizer.
    assert_eq!(count, 4 * values_of("Auth").len() - 3);
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
#[ignore = "needs aws-sam-translator; run tests/all"]
fn functions_are_in_the_subnets_that_are_set() {
    let (subnets, groups) = ("subnet-01234567,subnet-89abcdef", "sg-01234567");
    for (parameters, is_valid) in [
        ([("SubnetIds", subnets), ("SecurityGroupIds", groups)], true),
        ([("SubnetIds", ""), ("SecurityGroupIds", "")], true),
        ([("SubnetIds", subnets), ("SecurityGroupIds", "")], false),
        ([("SubnetIds", ""), ("SecurityGroupIds", groups)], false),
    ] {
        for (name, value) in parameters {
            let pattern = &template().json["Parameters"][name]["AllowedPattern"];
            let schema = serde_json::json!({"type": "string", "pattern": pattern});
            assert!(jsonschema::is_valid(&schema, &value.into()), "{value}");
        }
        assert_eq!(template().accepts(&parameters), is_valid, "{parameters:?}");
        if !is_valid {
            continue;
        }
        let is_in_vpc = !parameters[0].1.is_empty();
        let examples = [("DeployHello", "yes"), ("DeployFigma", "yes")];
        let resources = template().resources(&[&parameters[..], &examples].concat());
        let vpc = is_in_vpc.then(|| {
            let subnets: Vec<_> = subnets.split(',').collect();
            serde_json::json!({"SubnetIds": subnets, "SecurityGroupIds": [groups]})
        });
        let functions = of_type(&resources, "AWS::Lambda::Function");
        assert_eq!(functions.len(), 3);
        for (name, function) in functions {
            assert_eq!(function.get("VpcConfig"), vpc.as_ref(), "{name}");
        }
        for function in ["Toolbox", "Hello", "Figma"] {
            let name = format!("{function}Role");
            let role = &resources[&*name]["Properties"];
            let actions = actions_of(role).into_iter();
            let count = actions.filter(|(it, _)| it.starts_with("ec2:")).count();
            assert_eq!(count > 0, is_in_vpc, "{name}");
            // The function's code has no use for them.
            let only_lambda = r#""Condition":{"Null":{"lambda:SourceFunctionArn":"true"}}"#;
            let is_limited = role.to_string().contains(only_lambda);
            assert_eq!(is_limited, is_in_vpc, "{name}");
        }
    }
}

/// The secrets that readers create by hand and those of the stack have different names, and every
/// command that reads a secret or an output names one that exists.
#[test]
#[ignore = "needs aws-sam-translator; run tests/all"]
fn the_commands_of_the_pages_name_what_the_template_creates() {
    let pages = pages().into_iter();
    let pages = pages.filter(|(path, _)| ["docs/lambda.md", "docs/template.md"].contains(&&**path));
    let blocks = pages.flat_map(|(path, text)| blocks(&path, &text));
    let text: String = blocks.map(|block| block.text).collect();
    let words: Vec<_> = text.split([' ', '\n', ')']).collect();
    let values_of = |option: &str| -> Names {
        let pairs = words.windows(2).filter(|pair| pair[0] == option);
        pairs.map(|pair| pair[1].to_owned()).collect()
    };
    let stacks = values_of("--stack-name");
    let [stack] = stacks.iter().collect::<Vec<_>>()[..] else {
        panic!("{stacks:?}");
    };
    let secrets = resources("AWS::SecretsManager::Secret").into_values();
    let generated: Names = secrets
        .map(|it| {
            it["Name"]["Fn::Sub"]
                .as_str()
                .unwrap()
                .replace("${AWS::StackName}", stack)
        })
        .collect();
    let created = values_of("--name");
    assert!(created.is_disjoint(&generated), "{created:?}");
    let existing = &created | &generated;
    let read = values_of("--secret-id");
    assert!(!read.is_empty() && read.is_subset(&existing), "{read:?}");
    let outputs: Vec<_> = text.split("OutputKey=='").skip(1).collect();
    assert!(!outputs.is_empty());
    for output in outputs {
        let name = output.split_once('\'').unwrap().0;
        assert!(template().json["Outputs"].get(name).is_some(), "{name}");
    }
}

/// With the template's variables, clients learn where their users sign in. No provider and no AWS
/// service can be reached.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs aws-sam-translator; run tests/all"]
async fn the_toolbox_publishes_the_issuer_of_the_template() {
    let issuers = "http://127.0.0.1:9,http://localhost:9/realm";
    let variables = environment(&[
        ("TOOLS_AUTH", "oidc"),
        ("TOOLS_OIDC_AUDIENCES", "api://tools"),
        ("TOOLS_OIDC_CLIENT_IDS", "one,two"),
        ("TOOLS_OIDC_ISSUERS", issuers),
        ("TOOLS_OIDC_SCOPES", "tools.call,mail.read"),
        ("TOOLS_IDEMPOTENCY", "none"),
        ("TOOLS_SECRETS", "none"),
    ]);
    let (_running, url) = Running::serving(toolbox().envs(variables));
    let path = "/.well-known/oauth-protected-resource/mcp";
    let sent = reqwest::get(format!("{url}{path}")).await.unwrap();
    let metadata: Value = sent.json().await.unwrap();
    assert_eq!(metadata["resource"], format!("{url}/mcp"));
    let issuers: Vec<_> = issuers.split(',').collect();
    assert_eq!(
        metadata["authorization_servers"],
        serde_json::json!(issuers)
    );
    let scopes = serde_json::json!(["mail.read", "tools.call"]);
    assert_eq!(metadata["scopes_supported"], scopes);
    let call = reqwest::Client::new().post(format!("{url}/tools/call"));
    assert_eq!(call.send().await.unwrap().status(), 401);
}

/// With the template's variables, the toolbox is the issuer. No provider and no AWS service can be
/// reached.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs aws-sam-translator; run tests/all"]
async fn the_toolbox_is_an_issuer_with_the_variables_of_the_template() {
    let variables = environment(&[
        ("TOOLS_AUTH", "api-key,sign-in"),
        ("TOOLS_SIGN_IN_PROVIDER", "cognito"),
        ("TOOLS_SIGN_IN_CLIENT_ID", "toolbox"),
        ("TOOLS_SIGN_IN_ISSUER", "http://127.0.0.1:9/pool"),
        (
            "TOOLS_SIGN_IN_ALLOW",
            "group:Tools Team,domain:acme.example",
        ),
        (
            "TOOLS_SIGN_IN_CLIENTS",
            "claude.ai,http://localhost/callback",
        ),
        ("TOOLS_SIGN_IN_SCOPES", "tools.call,mail.read"),
        ("TOOLS_SIGN_IN_USER_CLAIM", "cognito:username"),
        ("TOOLS_IDEMPOTENCY", "none"),
        ("TOOLS_SECRETS", "none"),
    ]);
    let (_running, url) = Running::serving(toolbox().envs(variables));
    let get = async |path: &str| -> Value {
        let sent = reqwest::get(format!("{url}/.well-known/{path}")).await;
        sent.unwrap().json().await.unwrap()
    };
    let metadata = get("oauth-authorization-server").await;
    assert_eq!(metadata["issuer"], url);
    assert_eq!(metadata["token_endpoint"], format!("{url}/token"));
    let scopes = serde_json::json!(["mail.read", "tools.call"]);
    assert_eq!(metadata["scopes_supported"], scopes);
    let resource = get("oauth-protected-resource/mcp").await;
    let servers = serde_json::json!([url]);
    assert_eq!(resource["authorization_servers"], servers);
}

pub(crate) fn stdout_of(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}\n{stdout}\n{stderr}");
    stdout
}

#[test]
#[ignore = "needs aws-sam-cli; run tests/all"]
fn sam_and_cfn_lint_accept_the_template() {
    let mut sam = Command::new(installed("sam"));
    sam.args(["validate", "--lint", "--region", "us-east-1"]);
    sam.args(["-t", "template.yaml"])
        .current_dir(repository("."));
    let stdout = stdout_of(sam.env("SAM_CLI_TELEMETRY", "0"));
    assert!(stdout.contains("is a valid SAM Template"), "{stdout}");
}
