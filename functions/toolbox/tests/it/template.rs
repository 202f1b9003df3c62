//! `template.yaml`, against the code and against `docs/operations.md`.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
    process::Command,
    sync::LazyLock,
    time::Duration,
};

use lambda_tools::Toolkit;
use serde_json::Value;
use test_support::{
    aws::Emulator,
    documents::{quoted, table},
    installed, isolated,
    lambda::{RUNTIME, event, invoke_on},
    repository,
};

/// The names of a set, for messages that one can read.
type Names = BTreeSet<String>;

/// The template as SAM reads it, as JSON.
fn template() -> &'static Value {
    static TEMPLATE: LazyLock<Value> = LazyLock::new(|| {
        let output = Command::new(installed("python"))
            .arg(repository("functions/toolbox/tests/sam_transform.py"))
            .arg(repository("template.yaml"))
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{said}");
        serde_json::from_slice(&output.stdout).unwrap()
    });
    &TEMPLATE
}

fn resources(of_type: &str) -> BTreeMap<&'static str, &'static Value> {
    let all = template()["Resources"].as_object().unwrap();
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

/// The actions that the roles allow: by role, each with its resources.
fn actions_of(role: &Value) -> Vec<(String, String)> {
    fn statements<'a>(value: &'a Value, found: &mut Vec<&'a Value>) {
        match value {
            Value::Object(map) if map.contains_key("Action") => found.push(value),
            Value::Object(map) => map.values().for_each(|it| statements(it, found)),
            Value::Array(list) => list.iter().for_each(|it| statements(it, found)),
            _ => {}
        }
    }
    let mut found = Vec::new();
    statements(&role["Policies"], &mut found);
    let mut actions = Vec::new();
    for statement in found {
        assert_eq!(statement["Effect"], "Allow");
        let named = match &statement["Action"] {
            Value::String(action) => vec![action.clone()],
            Value::Array(list) => list
                .iter()
                .map(|it| it.as_str().unwrap().to_owned())
                .collect(),
            other => panic!("{other}"),
        };
        let resource = statement["Resource"].to_string();
        actions.extend(named.into_iter().map(|it| (it, resource.clone())));
    }
    actions
}

/// All of the source below a folder.
fn source(folder: &Path) -> Vec<String> {
    let mut texts = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            texts.extend(source(&path));
        } else if path.extension().is_some_and(|it| it == "rs") {
            texts.push(fs::read_to_string(path).unwrap());
        }
    }
    texts
}

fn code() -> Vec<String> {
    let mut texts = source(&repository("src"));
    for folder in fs::read_dir(repository("functions")).unwrap() {
        texts.extend(source(&folder.unwrap().path().join("src")));
    }
    texts
}

/// `batch_get_secret_value` → `BatchGetSecretValue`.
fn action_named(method: &str) -> String {
    let word = |word: &str| format!("{}{}", word[..1].to_uppercase(), &word[1..]);
    method.split('_').map(word).collect()
}

/// What a source calls on a client of the SDK.
fn actions_in(text: &str, service: &str, marker: &str) -> Names {
    // However a chain is broken into lines.
    let text: String = text.split_whitespace().collect();
    // A client that is kept would be called where nobody looks.
    let client = marker.trim_end_matches('.');
    let kept = text.matches(client).count() - text.matches(marker).count();
    assert_eq!(kept, 0, "call the client of {service} where it is got");
    let methods = text.split(marker).skip(1);
    let methods = methods.map(|call| call.split('(').next().unwrap().to_owned());
    methods
        .map(|method| format!("{service}:{}", action_named(&method)))
        .collect()
}

/// The AWS actions that the code calls.
fn called_actions() -> Names {
    let mut actions = Names::new();
    for (service, marker) in [("dynamodb", "client()?."), ("secretsmanager", "made()?.")] {
        for text in code() {
            let is_of_service = match service {
                "dynamodb" => text.contains("aws_sdk_dynamodb"),
                _ => text.contains("aws_sdk_secretsmanager"),
            };
            if is_of_service {
                actions.extend(actions_in(&text, service, marker));
            }
        }
    }
    actions
}

#[test]
#[ignore = "needs aws-sam-translator; run tests/all"]
fn roles_allow_what_the_code_calls_and_nothing_else() {
    let called = called_actions();
    assert!(called.len() >= 5, "{called:?}");
    let roles = resources("AWS::IAM::Role");
    let toolbox = actions_of(roles["ToolboxRole"]);
    let of_services = toolbox.iter().map(|(action, _)| action);
    let of_services = of_services.filter(|it| !it.starts_with("logs:") && !it.starts_with("xray:"));
    assert_eq!(of_services.cloned().collect::<Names>(), called);

    // Each table by itself: calls are claimed without being read before.
    let text = fs::read_to_string(repository("src/store/dynamodb.rs")).unwrap();
    for (name, unused) in [("Calls", "dynamodb:GetItem"), ("Grants", "")] {
        let mut called = actions_in(&text, "dynamodb", "client()?.");
        assert_eq!(called.remove(unused), !unused.is_empty());
        let on_table = format!("[\"{name}\",\"Arn\"]");
        let allowed = toolbox.iter().filter(|(_, on)| on.contains(&on_table));
        let allowed: Names = allowed.map(|(action, _)| action.clone()).collect();
        assert_eq!(allowed, called, "{name}");
    }

    let mut documented: BTreeMap<&str, Names> = BTreeMap::new();
    for row in table("action") {
        let roles = match &*row[2] {
            "both" => vec!["HelloRole", "ToolboxRole"],
            "toolbox" => vec!["ToolboxRole"],
            other => panic!("{other}"),
        };
        for role in roles {
            let names = documented.entry(role).or_default();
            names.extend(quoted(&row[0]));
        }
    }
    for (role, properties) in roles {
        assert_eq!(properties.get("ManagedPolicyArns"), None, "{role}");
        let allowed = actions_of(properties);
        let names: Names = allowed.iter().map(|(action, _)| action.clone()).collect();
        // Functions that came later need not be in the table.
        if let Some(documented) = documented.remove(role) {
            assert_eq!(names, documented, "{role}");
        }
        for (action, resource) in allowed {
            let takes_none =
                action == "secretsmanager:BatchGetSecretValue" || action.starts_with("xray:");
            assert_eq!(resource == "\"*\"", takes_none, "{role}: {action}");
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
        .chain(["TOOLS_GOOGLE_CLIENT_SECRET"])
    {
        // With what Secrets Manager puts behind the name, and without, as long as it is not there.
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

/// What each table's records are written with is in the table's definition.
#[test]
#[ignore = "needs aws-sam-translator; run tests/all"]
fn tables_have_what_the_code_writes() {
    let tables = resources("AWS::DynamoDB::Table");
    assert_eq!(tables.keys().collect::<Vec<_>>(), [&"Calls", &"Grants"]);
    let code = code();
    let writes = |attribute: &str| {
        let text = format!("\"{attribute}\"");
        code.iter()
            .any(|it| it.contains("aws_sdk_dynamodb") && it.contains(&text))
    };
    for (name, table) in tables {
        let keys = serde_json::json!([{"AttributeName": "id", "KeyType": "HASH"}]);
        assert_eq!(table["KeySchema"], keys, "{name}");
        let kinds = serde_json::json!([{"AttributeName": "id", "AttributeType": "S"}]);
        assert_eq!(table["AttributeDefinitions"], kinds, "{name}");
        let expiry = &table["TimeToLiveSpecification"];
        assert_eq!(expiry["Enabled"], true, "{name}");
        assert!(
            writes("id") && writes(expiry["AttributeName"].as_str().unwrap()),
            "{name}"
        );
        assert_eq!(table["BillingMode"], "PAY_PER_REQUEST", "{name}");
        assert_eq!(table["SSESpecification"]["SSEEnabled"], true, "{name}");
        let backups = &table["PointInTimeRecoverySpecification"];
        assert_eq!(backups["PointInTimeRecoveryEnabled"], true, "{name}");
    }
}

/// Texts in the code that are names of environment variables: those that begin as ours do, and
/// those that something is asked for by name.
fn read_variables() -> Names {
    let begins = [
        "ALLOWED_", "AWS_", "GMAIL_", "HOST", "LOG_", "OTEL_", "PORT", "RECORD_", "RUST_",
        "TOOLS_", "TWILIO_",
    ];
    let asks = ["var(", "var_os(", "set(", "list(", "seconds(", "yes_or_no("];
    let is_name = |before: &str, text: &str| {
        let is_upper = |it: char| it.is_ascii_uppercase() || it.is_ascii_digit() || it == '_';
        let is_known = begins.iter().any(|begin| text.starts_with(begin));
        let is_asked_for = asks.iter().any(|ask| before.trim_end().ends_with(ask));
        (is_known || (is_asked_for && !text.is_empty())) && text.chars().all(is_upper)
    };
    let mut names = Names::new();
    for text in code() {
        // Without its tests.
        let text = text.split("#[cfg(test)]").next().unwrap().to_owned();
        let pieces: Vec<_> = text.split('"').collect();
        for pair in pieces.windows(2) {
            if is_name(pair[0], pair[1]) {
                names.insert(pair[1].to_owned());
            }
        }
    }
    // Made of a provider's name.
    for provider in ["GITHUB", "GOOGLE", "MICROSOFT", "SLACK"] {
        for part in ["CLIENT_ID", "CLIENT_SECRET", "ISSUER"] {
            names.insert(format!("TOOLS_{provider}_{part}"));
        }
    }
    names
}

#[test]
#[ignore = "needs aws-sam-translator; run tests/all"]
fn variables_are_known_and_documented() {
    let read = read_variables();
    let documents = [
        fs::read_to_string(repository("src/serve.rs")).unwrap(),
        fs::read_to_string(repository("docs/operations.md")).unwrap(),
        fs::read_to_string(repository("README.md")).unwrap(),
    ];
    // Of the SDK and of Lambda itself, where they say more than we could.
    let elsewhere = [
        "AWS_ACCESS_KEY_ID",
        "AWS_DEFAULT_REGION",
        "AWS_ENDPOINT_URL",
        "AWS_LAMBDA_FUNCTION_NAME",
        "AWS_LAMBDA_FUNCTION_VERSION",
        "AWS_REGION",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN",
    ];
    let is_documented = |name: &str| {
        let alike = ["GITHUB", "MICROSOFT", "SLACK"]
            .iter()
            .fold(name.to_owned(), |name, provider| {
                name.replace(provider, "GOOGLE")
            });
        documents.iter().any(|text| {
            text.contains(&format!("`{alike}`")) || text.contains(&format!("`{alike}="))
        })
    };
    let silent: Vec<_> = read
        .iter()
        .filter(|name| !elsewhere.contains(&&***name) && !is_documented(name))
        .collect();
    assert!(silent.is_empty(), "documented nowhere: {silent:?}");

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
        // Functions that came later need not be in the table.
        if let Some(documented) = documented.remove(name) {
            assert_eq!(set, documented, "{name}");
        }
        // Those below us: tests run functions with the same.
        let runtime = RUNTIME.map(|(name, value)| {
            assert_eq!(properties["Environment"]["Variables"][name], value);
            name
        });
        let unknown: Vec<_> = set
            .iter()
            .filter(|it| !read.contains(*it) && !runtime.contains(&&***it))
            .collect();
        assert!(
            unknown.is_empty(),
            "{name} sets what nobody reads: {unknown:?}"
        );
    }
    assert!(documented.is_empty(), "no such functions: {documented:?}");
}

#[test]
#[ignore = "needs aws-sam-translator; run tests/all"]
fn our_answer_comes_before_the_platforms() {
    let integration = resources("AWS::ApiGatewayV2::Integration")["ToolboxIntegration"];
    let gateway = integration["TimeoutInMillis"].as_f64().unwrap() / 1000.0;
    let rows = table("limit");
    let seconds = |name: &str| -> f64 {
        let row = rows.iter().find(|row| row[0].starts_with(name));
        row.unwrap()[1].parse().unwrap()
    };
    for name in ["Hello", "Toolbox"] {
        let timeout = function(name)["Timeout"].as_f64().unwrap();
        assert!((timeout - seconds("the function")).abs() < 0.001);
        let ours = timeout + seconds("starting") + seconds("getting ready");
        assert!(ours < gateway.min(29.0), "{ours} s and {gateway} s");
    }
    assert!((seconds("a tool") - lambda_tools::DEFAULT_TIMEOUT.as_secs_f64()).abs() < 0.001);
    // What the code says of it.
    for (path, says) in [
        (
            "src/serve/lambda.rs",
            format!(
                "LONGEST_WARM_UP: Duration = Duration::from_secs({})",
                seconds("getting ready")
            ),
        ),
        (
            "src/arrival.rs",
            "MARGIN: Duration = Duration::from_millis(300)".into(),
        ),
    ] {
        let text = fs::read_to_string(repository(path)).unwrap();
        assert!(text.contains(&says), "{path}: {says}");
    }
    assert!(rows.iter().any(|row| row[2].contains("0.3 seconds before")));
}

#[test]
#[ignore = "needs aws-sam-translator; run tests/all"]
fn every_function_is_watched() {
    let template = fs::read_to_string(repository("template.yaml")).unwrap();
    for folder in fs::read_dir(repository("functions")).unwrap() {
        let name = folder.unwrap().file_name().into_string().unwrap();
        assert!(
            template.contains(&format!("Binary: {name}\n")),
            "functions/{name} is not in template.yaml; copy what stands there for hello, with \
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
    let resources = &self::template()["Resources"];
    // Grants are kept, and what reads them with them.
    for kept in ["Grants", "AuthorizationKey"] {
        let [deletion, replacement] =
            ["DeletionPolicy", "UpdateReplacePolicy"].map(|policy| &resources[kept][policy]);
        assert_eq!(deletion, "RetainExceptOnCreate", "{kept}");
        assert_eq!(replacement, "Retain", "{kept}");
    }
    // A secret is made by the template or put there by its owner: never a parameter.
    for (name, secret) in self::resources("AWS::SecretsManager::Secret") {
        assert!(secret.get("GenerateSecretString").is_some(), "{name}");
        assert_eq!(secret.get("SecretString"), None, "{name}");
    }
}

fn succeeds(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let complained = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}\n{said}\n{complained}");
    said
}

#[test]
#[ignore = "needs cfn-lint; run tests/all"]
fn cfn_lint_has_no_remarks() {
    let said = succeeds(Command::new(installed("cfn-lint")).arg(repository("template.yaml")));
    assert_eq!(said, "");
}

/// Of `sam`, which is not to tell anybody that it ran.
fn sam(arguments: &[&str]) -> Command {
    let mut command = Command::new(installed("sam"));
    command.args(arguments).current_dir(repository("."));
    command.env("SAM_CLI_TELEMETRY", "0");
    command
}

#[test]
#[ignore = "needs aws-sam-cli; run tests/all"]
fn sam_validates_the_template() {
    let arguments = [
        "validate",
        "--lint",
        "--region",
        "us-east-1",
        "-t",
        "template.yaml",
    ];
    let said = succeeds(&mut sam(&arguments));
    assert!(said.contains("is a valid SAM Template"), "{said}");
}

/// The newest version of glibc that a program asks for.
fn newest_glibc(program: &[u8]) -> (u32, u32) {
    let text = String::from_utf8_lossy(program);
    let versions = text.split("GLIBC_").skip(1).filter_map(|rest| {
        let end = rest.find(|it: char| !it.is_ascii_digit() && it != '.')?;
        let (major, minor) = rest[..end].split_once('.')?;
        let minor = minor.split('.').next()?;
        Some((major.parse().ok()?, minor.parse().ok()?))
    });
    versions.max().unwrap()
}

#[tokio::test]
#[ignore = "needs what tests/all builds"]
async fn what_is_deployed_answers_a_call() {
    for (name, resource, request) in [
        ("toolbox", "Toolbox", event("calculator/add.header-form")),
        ("hello", "Hello", {
            let mut event = event("calculator/add.header-form");
            let body = serde_json::json!({"tool_id": "Hello.Greet", "input": {"name": "Ada"}});
            event["body"] = body.to_string().into();
            event
        }),
    ] {
        let bootstrap = repository(&format!("target/sam/{resource}/bootstrap"));
        let program = fs::read(&bootstrap)
            .unwrap_or_else(|_| panic!("there is no {}; run tests/all", bootstrap.display()));
        // ELF, 64 bits, for x86_64.
        assert_eq!(&program[..5], b"\x7fELF\x02");
        assert_eq!(program[18], 62);
        // What provided.al2023 has.
        assert!(newest_glibc(&program) <= (2, 34), "{name}");
        let events = [(request, Some(Duration::from_secs(10)))];
        let (reports, _) = invoke_on(&mut isolated(Command::new(&bootstrap)), &events, &[]).await;
        assert_eq!(reports[0].1["statusCode"], 200, "{:?}", reports[0]);

        // And the same as a zip, as cargo-lambda makes it.
        let script = "import sys, zipfile; archive = zipfile.ZipFile(sys.argv[1]); \
                      entry, = archive.infolist(); print(entry.filename, oct(entry.external_attr >> 16)); \
                      assert archive.read(entry) == open(sys.argv[2], 'rb').read()";
        let zip = repository(&format!("target/lambda/{name}/bootstrap.zip"));
        let mut python = Command::new(installed("python"));
        let said = succeeds(python.args(["-c", script]).arg(&zip).arg(&bootstrap));
        assert_eq!(said.trim(), "bootstrap 0o100755", "{name}");
    }
}

/// The arguments of README's `cargo lambda deploy`.
fn deploys() -> Vec<String> {
    let readme = fs::read_to_string(repository("README.md")).unwrap();
    let mut lines = readme
        .lines()
        .filter_map(|it| it.strip_prefix("cargo lambda deploy "));
    let line = lines.next().unwrap();
    assert_eq!(lines.next(), None);
    line.split_whitespace().map(str::to_owned).collect()
}

/// README's command, against the APIs of an emulator.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs moto, cargo-lambda and what tests/all builds"]
async fn cargo_lambda_deploys_it() {
    let emulator = Emulator::with_policies().await;
    let mut cargo_lambda = Command::new(installed("cargo-lambda"));
    cargo_lambda
        .args(["lambda", "deploy"])
        .args(deploys())
        .args(["--endpoint-url", emulator.url()])
        .current_dir(repository("functions/toolbox"))
        .env("AWS_REGION", "us-east-1")
        .env("AWS_ACCESS_KEY_ID", "AKIA0123456789")
        .env("AWS_SECRET_ACCESS_KEY", "aws-0123456789");
    succeeds(&mut cargo_lambda);
    let url = format!("{}/2015-03-31/functions/toolbox", emulator.url());
    let credential =
        "AWS4-HMAC-SHA256 Credential=AKIA0123456789/20260101/us-east-1/lambda/aws4_request";
    let asked = reqwest::Client::new()
        .get(url)
        .header("authorization", credential);
    let deployed: Value = asked.send().await.unwrap().json().await.unwrap();
    let configuration = &deployed["Configuration"];
    assert_eq!(configuration["Timeout"], 23);
    assert_eq!(configuration["MemorySize"], 256);
    assert_eq!(configuration["Runtime"], "provided.al2023");
    let variables = &configuration["Environment"]["Variables"];
    assert_eq!(variables["TOOLS_AUTH"], "api-key");
    assert_eq!(variables["TOOLS_SECRETS_PREFIX"], "tools/");
}
