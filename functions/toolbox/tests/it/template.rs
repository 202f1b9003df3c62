//! `template.yaml`, compared with the code and with `docs/lambda.md`.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    process::Command,
    sync::LazyLock,
    time::Duration,
};

use lambda_tools::Toolkit;
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

use crate::{
    servers::TWILIO_KEY,
    stub::Stub,
    support::{Running, toolbox},
};

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
    const KEY: [(&str, &str); 1] = [("oxp-api-key", "key-of-today")];
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
    let parameters = [("GoogleClientId", "1234.apps.googleusercontent.com")];
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
            let on_all = ["secretsmanager:BatchGetSecretValue", "xray:", "ec2:"];
            let is_on_all = on_all.iter().any(|it| action.starts_with(it));
            assert_eq!(resource == "\"*\"", is_on_all, "{role}: {action}");
        }
    }
    assert!(documented.is_empty(), "no such roles: {documented:?}");
}

#[test]
#[ignore = "needs aws-sam-translator; run tests/all"]
fn the_toolbox_may_read_the_secrets_that_its_tools_need() {
    let toolkit = Toolkit::new(toolbox::tools(toolbox::Endpoints::default())).unwrap();
    let definitions = serde_json::to_value(toolkit.definitions()).unwrap();
    let tools = definitions.as_array().unwrap().iter();
    let needed: Names = tools
        .filter_map(|tool| tool["requirements"]["secrets"].as_array())
        .flatten()
        .map(|secret| secret["id"].as_str().unwrap().to_owned())
        .collect();
    assert!(!needed.is_empty());
    let role = resources("AWS::IAM::Role")["ToolboxRole"];
    let actions = actions_of(role);
    let readable = actions
        .iter()
        .find(|(action, _)| action == "secretsmanager:GetSecretValue");
    let (_, readable) = readable.unwrap();
    for id in needed
        .iter()
        .map(String::as_str)
        .chain(["TOOLS_GOOGLE_CLIENT_SECRET", "TOOLS_SIGN_IN_CLIENT_SECRET"])
    {
        // With the suffix that Secrets Manager adds to the name, and without it, for a secret that
        // does not exist yet.
        for arn in [format!("/{id}-??????\""), format!("/{id}\"")] {
            assert!(readable.contains(&arn), "{arn}");
        }
    }
    for (name, _) in resources("AWS::SecretsManager::Secret") {
        assert!(
            readable.contains(&format!("{{\"Ref\":\"{name}\"}}")),
            "{name}"
        );
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
        assert_eq!(table["SSESpecification"]["SSEEnabled"], true, "{name}");
        let backups = &table["PointInTimeRecoverySpecification"];
        assert_eq!(backups["PointInTimeRecoveryEnabled"], true, "{name}");
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
fn the_librarys_limit_comes_before_the_platforms() {
    let integration = resources("AWS::ApiGatewayV2::Integration")["ToolboxIntegration"];
    let gateway = integration["TimeoutInMillis"].as_f64().unwrap() / 1000.0;
    let rows = table("limit");
    let seconds = |name: &str| -> f64 {
        let row = rows.iter().find(|row| row[0].starts_with(name));
        row.unwrap()[1].parse().unwrap()
    };
    let resources = template().resources(&[]);
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
        assert!(
            properties.get("ReservedConcurrentExecutions").is_some(),
            "{name}"
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
            let parameters = with_github(&[("Auth", kind), ("OidcIssuers", issuers)]);
            let is_accepted = template().accepts(&parameters);
            assert_eq!(is_accepted, is_valid, "{kind}: {issuers}");
        }
        let without_provider = [("Auth", kind), ("OidcIssuers", "https://id.example")];
        let is_accepted = template().accepts(&without_provider);
        assert_eq!(is_accepted, !has("sign-in"), "{kind}");
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
            // Google cannot be the provider for people and for tools, too.
            let with_google = ("GoogleClientId", "1234.apps.googleusercontent.com");
            let both = [&with_issuer[..], &[with_google]].concat();
            let is_accepted = template().accepts(&both);
            assert_eq!(is_accepted, is_named && provider != "google", "{provider}");
        }
    }
    for (rules, is_valid) in [
        ("", true),
        ("anyone", true),
        ("organization:acme,group:Tools Team", true),
        ("organization:", false),
        ("acme", false),
        ("everyone", false),
    ] {
        let pattern = &template().json["Parameters"]["SignInAllow"]["AllowedPattern"];
        let schema = serde_json::json!({"type": "string", "pattern": pattern});
        let is_allowed = jsonschema::is_valid(&schema, &rules.into());
        assert_eq!(is_allowed, is_valid, "{rules}");
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
                assert_eq!(variables.get("TOOLS_GOOGLE_CLIENT_ID"), None);
                let role = resources["ToolboxRole"].to_string();
                for readable in ["TOOLS_SIGN_IN_CLIENT_SECRET", r#"["Grants","Arn"]"#] {
                    let is_allowed = role.contains(readable);
                    assert_eq!(is_allowed, is_signed_in, "{context}: {readable}");
                }
                assert!(!role.contains("TOOLS_GOOGLE_CLIENT_SECRET"), "{context}");

                // The API itself responds to preflight requests, and behind a URL, the toolbox.
                let (entry, settings) = match access {
                    "http-api" => ("ToolboxApi", "CorsConfiguration"),
                    _ => ("ToolboxUrl", "Cors"),
                };
                let allowed = match (access, is_signed_in, cors) {
                    ("http-api", true, _) => serde_json::json!(["*"]),
                    (_, _, "") => Value::Null,
                    _ => serde_json::json!([origin]),
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
        let events = |resources: &BTreeMap<&str, Value>, function| {
            resources[function]["Properties"]["Environment"]["Variables"]["TOOLS_EVENTS"].clone()
        };
        assert_eq!(events(&without, "Toolbox"), access);
        let all = template().resources(&with);
        assert_eq!(events(&all, "Toolbox"), format!("{access},agentcore"));
        assert_eq!(events(&all, "Hello"), "function-url");
        for name in ["ToolboxGateway", "ToolboxTarget", "GatewayRole"] {
            assert!(!without.contains_key(name), "{name}");
        }
        let target = &all["ToolboxTarget"]["Properties"];
        let lambda = &target["TargetConfiguration"]["Mcp"]["Lambda"];
        let arn = serde_json::json!({"Fn::GetAtt": ["Toolbox", "Arn"]});
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
        let trust = role["AssumeRolePolicyDocument"].to_string();
        assert!(trust.contains("bedrock-agentcore.amazonaws.com"), "{trust}");
        assert!(trust.contains("aws:SourceAccount"), "{trust}");
    }
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
        "ToolboxInvocations",
        "UndoneTasks",
        "ToolboxTasksUndone",
        "ToolboxTasksDropped",
    ];
    let arn = |name: &str| serde_json::json!({"Fn::GetAtt": [name, "Arn"]});
    for parameters in long_calls() {
        let has_tasks = parameters[0] == ("Tasks", "yes");
        let topic = ("AlarmTopic", "arn:aws:sns:us-east-1:123456789012:alarms");
        let resources = template().resources(&[&parameters[..], &[topic]].concat());
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
            ("sqs:SendMessage", arn("UndoneTasks")),
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

        let invocations = properties("ToolboxInvocations");
        let function = serde_json::json!({"Ref": "Toolbox"});
        assert_eq!(invocations["FunctionName"], function);
        assert_eq!(invocations["Qualifier"], "$LATEST");
        assert_eq!(invocations["MaximumRetryAttempts"], 0);
        // A unit test compares it with the code.
        assert_eq!(invocations["MaximumEventAgeInSeconds"], 300);
        let failed = &invocations["DestinationConfig"]["OnFailure"]["Destination"];
        assert_eq!(*failed, arn("UndoneTasks"));
        let queue = properties("UndoneTasks");
        assert_eq!(queue["SqsManagedSseEnabled"], true);
        assert_eq!(queue["MessageRetentionPeriod"], 14 * 24 * 60 * 60);

        let queue_name = serde_json::json!({"Fn::GetAtt": ["UndoneTasks", "QueueName"]});
        for (name, metric, of) in [
            (
                "ToolboxTasksUndone",
                "AWS/SQS ApproximateNumberOfMessagesVisible",
                ("QueueName", queue_name),
            ),
            (
                "ToolboxTasksDropped",
                "AWS/Lambda AsyncEventsDropped",
                ("FunctionName", function),
            ),
        ] {
            let alarm = properties(name);
            let [namespace, metric_name] =
                ["Namespace", "MetricName"].map(|it| alarm[it].as_str().unwrap());
            assert_eq!(format!("{namespace} {metric_name}"), metric);
            let dimensions = serde_json::json!([{"Name": of.0, "Value": of.1}]);
            assert_eq!(alarm["Dimensions"], dimensions, "{name}");
            assert_eq!(alarm["ComparisonOperator"], "GreaterThanThreshold");
            assert_eq!(alarm["Threshold"], 0, "{name}");
            assert_eq!(alarm["AlarmActions"], serde_json::json!([topic.1]));
        }
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
        let resources = template().resources(&parameters);
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
                assert_eq!(toolbox["TOOLS_EVENTS"], kinds);
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
        ("TOOLS_EVENTS", "function-url"),
        ("TOOLS_STREAMING", "function-url"),
        ("TOOLS_IDEMPOTENCY", "none"),
        ("TOOLS_SECRETS", "none"),
    ]);
    Running::serving(toolbox().envs(variables));
}

/// cfn-lint knows neither rules nor which conditions hold together, so it also checks what is created.
#[test]
#[ignore = "needs aws-sam-cli; run tests/all"]
fn cfn_lint_accepts_what_is_created_for_long_calls() {
    let folder = repository("target/template/long-calls");
    fs::create_dir_all(&folder).unwrap();
    let mut created = Vec::new();
    for (number, parameters) in long_calls().iter().enumerate() {
        if !template().accepts(parameters) {
            continue;
        }
        let mut resources = template().resources(parameters);
        for resource in resources.values_mut() {
            let resource = resource.as_object_mut().unwrap();
            resource.remove("Condition");
            resource.remove("Metadata");
        }
        let path = folder.join(format!("{number}.json"));
        let text = serde_json::json!({"Resources": resources}).to_string();
        fs::write(&path, text).unwrap();
        created.push(path);
    }
    assert_eq!(created.len(), 10);
    let stdout = stdout_of(Command::new(installed("cfn-lint")).args(created));
    assert_eq!(stdout, "");
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
                if !template().accepts(&parameters) {
                    continue;
                }
                count += 1;
                let resources = template().resources(&parameters);
                let variables = &resources["Toolbox"]["Properties"]["Environment"]["Variables"];
                // Where no AWS credentials are required, the toolbox checks its callers.
                let checks = if auth == "iam" { "none" } else { auth };
                assert_eq!(variables["TOOLS_AUTH"], checks);
                for route in &routes {
                    let is_consent = !client_id.is_empty() && consent.contains(route);
                    let expected = Some(auth != "iam" || is_consent);
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
    // All but a function URL that requires AWS credentials of the users' browsers.
    assert_eq!(count, 4 * values_of("Auth").len() - 1);
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
        let resources = template().resources(&parameters);
        let vpc = is_in_vpc.then(|| {
            let subnets: Vec<_> = subnets.split(',').collect();
            serde_json::json!({"SubnetIds": subnets, "SecurityGroupIds": [groups]})
        });
        let functions = of_type(&resources, "AWS::Lambda::Function");
        assert_eq!(functions.len(), 3);
        for (name, function) in functions {
            assert_eq!(function.get("VpcConfig"), vpc.as_ref(), "{name}");
        }
        for (name, role) in of_type(&resources, "AWS::IAM::Role") {
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
    let pages = pages.filter(|(path, _)| ["README.md", "docs/lambda.md"].contains(&&**path));
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
