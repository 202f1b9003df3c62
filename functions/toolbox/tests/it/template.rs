//! `template.yaml`, as SAM transforms it: what each parameter sets, who may call, what the roles
//! allow, and what the alarms look at.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    process::Command,
    sync::LazyLock,
};

use serde_json::{Value, json};
use test_support::{
    aws::{CREDENTIALS, emulated},
    documents::{quoted, table},
    installed,
    lambda::RUNTIME,
    repository,
    sam::{Parameters, Template, of_type},
};

use crate::{
    clients::stdout_of,
    support::{Running, toolbox},
};
use events::{Stub, TWILIO_KEY};

static TEMPLATE: LazyLock<Template> =
    LazyLock::new(|| Template::transform(&repository("template.yaml")));

/// Returns the properties of a resource, with the values of these parameters.
fn properties(name: &str, parameters: &Parameters<'_>) -> Value {
    let resource = TEMPLATE.resource(name, parameters);
    resource.unwrap_or_else(|| panic!("there is no {name} with {parameters:?}"))["Properties"]
        .take()
}

/// Returns the toolbox's variables, with the values of these parameters.
fn variables(parameters: &Parameters<'_>) -> Value {
    properties("Toolbox", parameters)["Environment"]["Variables"].take()
}

fn arn_of(name: &str) -> Value {
    json!({"Fn::GetAtt": [name, "Arn"]})
}

/// Returns the values that a parameter allows.
fn values_of(parameter: &str) -> Vec<&'static str> {
    let values = &TEMPLATE.json["Parameters"][parameter]["AllowedValues"];
    let values = values.as_array().unwrap().iter();
    values.map(|it| it.as_str().unwrap()).collect()
}

/// Returns the actions that a policy document allows, each with its resource.
fn actions_in(document: &Value) -> Vec<(String, Value)> {
    let mut actions = Vec::new();
    for statement in document["Statement"].as_array().unwrap() {
        assert_eq!(statement["Effect"], "Allow");
        let names = match &statement["Action"] {
            Value::Array(list) => list.clone(),
            action => vec![action.clone()],
        };
        let names = names.iter().map(|it| it.as_str().unwrap().to_owned());
        actions.extend(names.map(|it| (it, statement["Resource"].clone())));
    }
    actions
}

/// Returns the actions that the toolbox's role allows.
fn actions_of_toolbox(parameters: &Parameters<'_>) -> Vec<(String, Value)> {
    let role = properties("ToolboxRole", parameters);
    assert_eq!(role.get("ManagedPolicyArns"), None);
    actions_in(&role["Policies"][0]["PolicyDocument"])
}

#[test]
#[ignore = "needs aws-sam-cli; run tests/all"]
fn sam_and_cfn_lint_accept_the_templates() {
    for template in ["template.yaml", "crates/cli/src/zip/template.yaml"] {
        let mut sam = Command::new(installed("sam"));
        sam.args("validate --lint --region us-east-1 -t".split(' '));
        sam.arg(template);
        sam.current_dir(repository("."));
        let output = sam.env("SAM_CLI_TELEMETRY", "0").output();
        let stdout = stdout_of(&output.unwrap());
        assert!(stdout.contains("is a valid SAM Template"), "{stdout}");
    }
}

/// Parameters; a resource, or a variable of the toolbox; and the value of its property, or of the variable.
const VALUES: [&str; 25] = [
    r#" => Hello Architectures ["x86_64"]"#,
    r#"Architecture=arm64 => Toolbox Architectures ["arm64"]"#,
    r#"Memory=512 => Toolbox MemorySize "512""#,
    r#"LogLevel=DEBUG => Toolbox LoggingConfig {"LogFormat": "JSON", "ApplicationLogLevel": "DEBUG", "LogGroup": {"Ref": "ToolboxLog"}}"#,
    r#"AlarmEmail=ops@example.com => Alarms Subscription [{"Protocol": "email", "Endpoint": "ops@example.com"}]"#,
    " => Toolbox VpcConfig null",
    r#"SubnetIds=subnet-01,subnet-02 SecurityGroupIds=sg-01 => Toolbox VpcConfig {"SubnetIds": ["subnet-01", "subnet-02"], "SecurityGroupIds": ["sg-01"]}"#,
    r#"Access=function-url => ToolboxUrl InvokeMode "RESPONSE_STREAM""#,
    // The URL of a function in a VPC cannot stream.
    r#"Access=function-url SubnetIds=subnet-01 SecurityGroupIds=sg-01 => ToolboxUrl InvokeMode "BUFFERED""#,
    " => ToolboxLog RetentionInDays 30",
    " => HelloLog RetentionInDays 30",
    r#" => variable TOOLS_EVENTS "http-api,warm-up""#,
    r#"Access=function-url => variable TOOLS_EVENTS "function-url,warm-up""#,
    // A response that the URL does not expect is unreadable.
    r#"Access=function-url => variable TOOLS_STREAMING "function-url""#,
    "Access=function-url SubnetIds=subnet-01 SecurityGroupIds=sg-01 => variable TOOLS_STREAMING null",
    " => variable TOOLS_STREAMING null",
    r#" => variable TOOLS_METRICS "cloudwatch""#,
    r#"Monitoring=off => variable TOOLS_METRICS "none""#,
    r#" => variable TOOLS_IDEMPOTENCY_TABLE {"Ref": "Records"}"#,
    " => variable TOOLS_OAUTH_TABLE null",
    r#"Auth=sign-in => variable TOOLS_OAUTH_TABLE {"Ref": "Records"}"#,
    r#"SignInProvider=openid => variable TOOLS_SIGN_IN_PROVIDER "openid""#,
    r#"SignInClientId=toolbox => variable TOOLS_SIGN_IN_CLIENT_ID "toolbox""#,
    r#"SignInIssuer=https://id.example => variable TOOLS_SIGN_IN_ISSUER "https://id.example""#,
    r#"SignInAllow=group:staff => variable TOOLS_SIGN_IN_ALLOW "group:staff""#,
];

#[test]
#[ignore = "needs aws-sam-translator; run tests/all"]
fn each_parameter_sets_what_it_names() {
    for row in VALUES {
        let (parameters, expected) = row.split_once(" => ").unwrap();
        let parameters = parameters.split(' ').filter_map(|it| it.split_once('='));
        let parameters: Vec<_> = parameters.collect();
        let mut words = expected.splitn(3, ' ');
        let values = match words.next().unwrap() {
            "variable" => variables(&parameters),
            resource => properties(resource, &parameters),
        };
        let value = &values[words.next().unwrap()];
        let expected: Value = serde_json::from_str(words.next().unwrap()).unwrap();
        assert_eq!(*value, expected, "{row}");
    }
    let mut variables = variables(&[("Access", "function-url"), ("Auth", "sign-in")]);
    let variables = variables.as_object_mut().unwrap();
    // Tests run functions with the same variables of the runtime and the allocator.
    for (name, value) in RUNTIME {
        assert_eq!(variables.remove(name), Some(value.into()));
    }
    // Another test compares this page with the variables that the library reads.
    let page = fs::read_to_string(repository("docs/environment.md")).unwrap();
    let known = quoted(&page);
    let unknown = variables.keys().find(|name| !known.contains(name));
    assert_eq!(unknown, None);
}

/// Every entry point requires AWS credentials, or the toolbox requires its own.
#[test]
#[ignore = "needs aws-sam-translator; run tests/all"]
fn nobody_calls_without_credentials() {
    for auth in values_of("Auth") {
        for access in values_of("Access") {
            let context = format!("{auth} {access}");
            let parameters = [("Auth", auth), ("Access", access)];
            let resources = TEMPLATE.resources(&parameters);
            let is_iam = auth == "iam";
            let entry = match access {
                "http-api" => properties("ToolboxRoute", &parameters)["AuthorizationType"].take(),
                _ => properties("ToolboxUrl", &parameters)["AuthType"].take(),
            };
            assert_eq!(entry, if is_iam { "AWS_IAM" } else { "NONE" }, "{context}");
            let doors = ["ApiCallsToolbox", "EverybodyCallsUrl", "UrlCallsToolbox"];
            let doors = doors.map(|name| resources.contains_key(name));
            let is_open_url = access == "function-url" && !is_iam;
            let expected = [access == "http-api", is_open_url, is_open_url];
            assert_eq!(doors, expected, "{context}");

            let checks = &variables(&parameters)["TOOLS_AUTH"];
            assert_eq!(checks, if is_iam { "gateway" } else { auth }, "{context}");
            for (secret, kind) in [("ApiKey", "api-key"), ("OAuthKey", "sign-in")] {
                let is_used = auth.contains(kind);
                assert_eq!(resources.contains_key(secret), is_used, "{context}");
            }
        }
    }
    assert_eq!(variables(&[])["TOOLS_AUTH"], "api-key");
    let hello = properties("Hello", &[]);
    assert_eq!(hello["Environment"]["Variables"]["TOOLS_AUTH"], "none");
    assert_eq!(properties("HelloUrl", &[])["AuthType"], "AWS_IAM");
    // The template generates a secret, or its owner creates it; it is never a parameter.
    let all = TEMPLATE.resources(&[("Auth", "api-key,sign-in")]);
    for (name, secret) in of_type(&all, "AWS::SecretsManager::Secret") {
        assert!(secret.get("GenerateSecretString").is_some(), "{name}");
        assert_eq!(secret.get("SecretString"), None, "{name}");
    }
}

#[test]
#[ignore = "needs aws-sam-translator; run tests/all"]
fn rules_reject_what_is_incomplete() {
    let issuer = ("SignInIssuer", "https://id.example");
    for provider in values_of("SignInProvider") {
        let complete = [
            ("Auth", "api-key,sign-in"),
            ("SignInProvider", provider),
            ("SignInClientId", "toolbox"),
            ("SignInAllow", "anyone"),
        ];
        let needs_issuer = !["github", "google"].contains(&provider);
        let is_named = !provider.is_empty();
        assert_eq!(TEMPLATE.accepts(&complete), is_named && !needs_issuer);
        let with_issuer = [&complete[..], &[issuer]].concat();
        assert_eq!(TEMPLATE.accepts(&with_issuer), is_named, "{provider}");
        for missing in ["SignInProvider", "SignInClientId", "SignInAllow"] {
            let mut incomplete = with_issuer.clone();
            incomplete.retain(|(name, _)| *name != missing);
            assert!(!TEMPLATE.accepts(&incomplete), "{provider}: {missing}");
        }
    }
    let subnets = ("SubnetIds", "subnet-01");
    let groups = ("SecurityGroupIds", "sg-01");
    assert!(TEMPLATE.accepts(&[]) && TEMPLATE.accepts(&[subnets, groups]));
    assert!(!TEMPLATE.accepts(&[subnets]) && !TEMPLATE.accepts(&[groups]));
}

/// The toolbox invokes itself; what is never done is found.
#[test]
#[ignore = "needs aws-sam-translator; run tests/all"]
fn tasks_have_what_they_need_if_there_are_any() {
    for (tasks, limit) in [("no", 23), ("yes", 900)] {
        let parameters = [("Tasks", tasks)];
        let has_tasks = tasks == "yes";
        let resources = TEMPLATE.resources(&parameters);
        for name in "ToolboxInvokesItself ToolboxTasks UndoneTasks TasksUndone".split(' ') {
            assert_eq!(resources.contains_key(name), has_tasks, "{name}");
        }
        assert_eq!(properties("Toolbox", &parameters)["Timeout"], limit);
        let sends = ("sqs:SendMessage".to_owned(), arn_of("UndoneTasks"));
        let actions = actions_of_toolbox(&parameters);
        assert_eq!(actions.contains(&sends), has_tasks);
    }
    let parameters = [("Tasks", "yes")];
    let policy = properties("ToolboxInvokesItself", &parameters);
    assert_eq!(policy["Roles"], json!([{"Ref": "ToolboxRole"}]));
    let versions = json!({"Fn::Sub": "${Toolbox.Arn}:*"});
    let itself = json!([arn_of("Toolbox"), versions]);
    assert_eq!(
        actions_in(&policy["PolicyDocument"]),
        [("lambda:InvokeFunction".to_owned(), itself)]
    );
    let expected = json!({
        "FunctionName": {"Ref": "Toolbox"},
        "Qualifier": "$LATEST",
        "MaximumRetryAttempts": 0,
        // A unit test compares it with the code.
        "MaximumEventAgeInSeconds": 300,
        "DestinationConfig": {"OnFailure": {"Destination": arn_of("UndoneTasks")}},
    });
    assert_eq!(properties("ToolboxTasks", &parameters), expected);
    let queue = properties("UndoneTasks", &parameters);
    assert_eq!(queue["SqsManagedSseEnabled"], true);
    assert_eq!(queue["MessageRetentionPeriod"], 14 * 24 * 60 * 60);
}

#[test]
#[ignore = "needs aws-sam-translator; run tests/all"]
fn the_librarys_limit_comes_before_the_platforms() {
    let rows = table("limit");
    let seconds = |name: &str| -> f64 {
        let row = rows.iter().find(|row| row[0].starts_with(name));
        row.unwrap()[1].parse().unwrap()
    };
    for name in ["Hello", "Toolbox"] {
        let timeout = properties(name, &[])["Timeout"].as_f64().unwrap();
        assert!((timeout - seconds("the function")).abs() < 0.001);
        let ours = timeout + seconds("starting") + seconds("getting ready");
        let gateway = seconds("REST APIs").min(seconds("HTTP APIs"));
        assert!(ours < gateway, "{ours} s and {gateway} s");
    }
    assert!((seconds("a tool") - lambda_tools::DEFAULT_TIMEOUT.as_secs_f64()).abs() < 0.001);
}

/// Returns the requests to AWS of a toolbox with the template's variables: for a call that succeeds,
/// one that may be retried, and one whose user has granted nothing yet.
async fn requests_of_the_toolbox() -> Vec<(String, Value)> {
    const KEY: (&str, &str) = ("oxp-api-key", "the-key-of-today");
    let (_emulator, proxy) = emulated().await;
    for (name, value) in [
        ("TOOLS_API_KEY", KEY.1),
        ("TOOLS_GOOGLE_CLIENT_SECRET", "toolbox-secret"),
        ("TOOLS_OAUTH_KEY", "a-key-of-this-server-0123456789abcdef"),
        ("TWILIO_API_KEY", TWILIO_KEY),
    ] {
        proxy.put_secret(&format!("stack/{name}"), value).await;
    }
    proxy.create_table("Records").await;
    let stub = Stub::start().await;
    let variables = variables(&[("Monitoring", "off")]);
    let texts = variables.as_object().unwrap().iter().map(|(name, value)| {
        let reference = value["Ref"].as_str().or_else(|| value["Fn::Sub"].as_str());
        let text = value.as_str().or(reference).unwrap();
        (name, text.replace("${AWS::StackName}", "stack"))
    });
    let (_running, url) = Running::serving(
        toolbox()
            .envs(texts)
            .env("AWS_ENDPOINT_URL", proxy.url())
            .envs(CREDENTIALS)
            .env("TOOLS_OAUTH_TABLE", "Records")
            .env("TOOLS_QUOTAS", "caller=60/minute")
            .env("TOOLS_GOOGLE_CLIENT_ID", "toolbox")
            .env("TWILIO_URL", stub.url()),
    );
    let call = async |body: Value| -> Value {
        let request = reqwest::Client::new().post(format!("{url}/tools/call"));
        let sent = request.header(KEY.0, KEY.1).body(body.to_string()).send();
        sent.await.unwrap().json().await.unwrap()
    };
    for (to, works) in [("+15005550010", true), ("+15005550429", false)] {
        let input = json!({"to": to, "message": "Hi"});
        let answer = call(json!({"tool_id": "SMS.Send", "call_id": to, "input": input})).await;
        assert_eq!(answer["success"], works, "{answer}");
    }
    let emails = json!({"tool_id": "Gmail.GetEmails", "context": {"user_id": "user-1"}});
    let missing = call(emails).await;
    let challenge = &missing["missing_requirements"]["authorization"][0]["url"];
    assert!(challenge.is_string(), "{missing}");
    proxy.take_requests()
}

#[tokio::test]
#[ignore = "needs moto and aws-sam-translator; run tests/all"]
async fn the_toolbox_needs_exactly_the_actions_that_its_role_allows() {
    let requests = requests_of_the_toolbox().await;
    let used = requests.iter().map(|(action, body)| {
        let service = match &body["TableName"] {
            Value::Null => "secretsmanager",
            table => {
                assert_eq!(table, "Records");
                "dynamodb"
            }
        };
        format!("{service}:{action}")
    });
    let actions = actions_of_toolbox(&[]).into_iter();
    // The actions on the log are used by Lambda itself.
    let allowed = actions.filter(|(name, _)| !name.starts_with("logs:"));
    let mut allowed: BTreeMap<_, _> = allowed.collect();
    let stack = "arn:${AWS::Partition}:secretsmanager:${AWS::Region}:${AWS::AccountId}:secret:\
                 ${AWS::StackName}/*";
    // BatchGetSecretValue takes no resource: it reads what GetSecretValue is allowed to read.
    let readable = allowed.remove("secretsmanager:GetSecretValue");
    assert_eq!(readable, Some(json!({"Fn::Sub": stack})));
    for (action, resource) in &allowed {
        let expected = match action.strip_prefix("dynamodb:") {
            Some(_) => arn_of("Records"),
            None => json!("*"),
        };
        assert_eq!(*resource, expected, "{action}");
    }
    let used: BTreeSet<_> = used.collect();
    assert_eq!(used, allowed.into_keys().collect());

    let table = properties("Records", &[]);
    let keys = json!([{"AttributeName": "id", "KeyType": "HASH"}]);
    assert_eq!(table["KeySchema"], keys);
    let expiry = &table["TimeToLiveSpecification"];
    assert_eq!(expiry["Enabled"], true);
    for (_, body) in requests.iter().filter(|(it, _)| it == "PutItem") {
        let item = &body["Item"];
        assert!(item["id"]["S"].is_string(), "{item}");
        let expires_at = &item[expiry["AttributeName"].as_str().unwrap()];
        assert!(expires_at["N"].is_string(), "{item}");
    }
}

/// In subnets, Lambda itself creates interfaces as the function, whose code cannot.
#[test]
#[ignore = "needs aws-sam-translator; run tests/all"]
fn only_lambda_itself_may_use_the_network() {
    let vpc = [("SubnetIds", "subnet-01"), ("SecurityGroupIds", "sg-01")];
    for (parameters, is_in_vpc) in [(&[][..], false), (&vpc, true)] {
        let actions = actions_of_toolbox(parameters);
        let uses = actions.iter().any(|(name, _)| name.starts_with("ec2:"));
        assert_eq!(uses, is_in_vpc);
        let role = properties("ToolboxRole", parameters).to_string();
        let only_lambda = r#""Condition":{"Null":{"lambda:SourceFunctionArn":"true"}}"#;
        assert_eq!(role.contains(only_lambda), is_in_vpc);
    }
}

/// Returns the namespace, the metric, the statistic, the number of periods, the threshold and the
/// dimensions of an alarm, with the names of resources in place of references.
fn summary_of(alarm: &Value) -> String {
    let text = |value: &Value| {
        let name = value["Ref"].as_str();
        let name = name.or_else(|| value["Fn::GetAtt"][0].as_str());
        let name = name.or_else(|| value.as_str());
        name.map_or_else(|| value.to_string(), str::to_owned)
    };
    let fields = ["Namespace", "MetricName", "Statistic"];
    let fields = fields.into_iter().chain(["EvaluationPeriods", "Threshold"]);
    let fields = fields.map(|name| text(&alarm[name]));
    let dimensions = alarm["Dimensions"].as_array().into_iter().flatten();
    let dimensions = dimensions.map(|it| format!("{}={}", text(&it["Name"]), text(&it["Value"])));
    fields.chain(dimensions).collect::<Vec<_>>().join(" ")
}

/// The metrics of services are those of their documentation.
#[test]
#[ignore = "needs aws-sam-translator; run tests/all"]
fn each_alarm_looks_at_a_metric_and_notifies_the_address() {
    let tasks = "AWS/SQS ApproximateNumberOfMessagesVisible Maximum 1 1 QueueName=UndoneTasks";
    let records = "AWS/DynamoDB SystemErrors Sum 1 1 TableName=Records Operation=PutItem";
    let api = "AWS/ApiGateway 5xx Sum 1 5 ApiId=ToolboxApi";
    let url = "AWS/Lambda Url5xxCount Sum 1 5 FunctionName=Toolbox";
    for (access, errors) in [("http-api", api), ("function-url", url)] {
        let expected = [
            ("EverythingRefused", "AWS::StackName Refusals Minimum 3 1"),
            ("LoggedErrors", "AWS::StackName LoggedErrors Sum 1 1"),
            ("ServerErrors", errors),
            ("TableErrors", records),
            ("TasksUndone", tasks),
        ];
        let email = ("AlarmEmail", "ops@example.com");
        let resources = TEMPLATE.resources(&[("Access", access), ("Tasks", "yes"), email]);
        let alarms = of_type(&resources, "AWS::CloudWatch::Alarm");
        let found = alarms.iter().map(|(name, it)| (*name, summary_of(it)));
        let expected = expected.map(|(name, summary)| (name, summary.to_owned()));
        assert_eq!(found.collect::<Vec<_>>(), expected);
        for (name, alarm) in alarms {
            assert_eq!(alarm["Period"], 300, "{name}");
            let comparison = "GreaterThanOrEqualToThreshold";
            assert_eq!(alarm["ComparisonOperator"], comparison, "{name}");
            assert_eq!(alarm["TreatMissingData"], "notBreaching", "{name}");
            assert_eq!(alarm["AlarmActions"], json!([{"Ref": "Alarms"}]), "{name}");
        }
        let rows = table("alarm");
        let documented = rows.iter().flat_map(|row| quoted(&row[0]));
        assert!(documented.eq(expected.map(|it| it.0)));
    }
}

#[test]
#[ignore = "needs aws-sam-translator; run tests/all"]
fn monitoring_costs_what_the_page_says() {
    for (parameters, count) in [(&[][..], 4), (&[("Monitoring", "off")], 0)] {
        let resources = TEMPLATE.resources(parameters);
        let alarms = of_type(&resources, "AWS::CloudWatch::Alarm");
        assert_eq!(alarms.len(), count);
        let notifies = alarms.values().any(|it| it.get("AlarmActions").is_some());
        assert!(!notifies && !resources.contains_key("Alarms"));
    }
    // An alarm costs 10 cents a month, and a secret 40.
    let secrets = of_type(&TEMPLATE.resources(&[]), "AWS::SecretsManager::Secret").len();
    let cents = 10 * 4 + 40 * secrets;
    let page = fs::read_to_string(repository("docs/costs.md")).unwrap();
    let stated = format!("costs ${}.{:02} a month", cents / 100, cents % 100);
    assert!(page.contains(&stated), "{stated}");
}

/// Returns true if a line of the log matches a pattern of comparisons with texts, which are joined
/// either by `||` or by `&&`. A line without the field passes no comparison.
fn is_counted(pattern: &str, line: &Value) -> bool {
    let passes = |comparison: &str| {
        let comparison = comparison.trim_matches([' ', '{', '}', '(', ')']);
        let (field, rest) = comparison.split_once(' ').unwrap();
        let (operator, text) = rest.split_once(' ').unwrap();
        let value = line[field.strip_prefix("$.").unwrap()].as_str();
        let text = text.trim_matches('"');
        value.is_some_and(|it| match operator {
            "=" => it == text,
            "!=" => it != text,
            other => panic!("{other}"),
        })
    };
    if pattern.contains("&&") {
        assert!(!pattern.contains("||"));
        pattern.split("&&").all(passes)
    } else {
        pattern.split("||").any(passes)
    }
}

/// Another test shows that the log has these fields, and these reasons.
#[test]
#[ignore = "needs aws-sam-translator; run tests/all"]
fn metric_filters_count_what_their_names_say() {
    let lines = [
        json!({"message": "call", "level": "INFO", "outcome": "success"}),
        json!({"message": "call", "level": "WARN", "outcome": "rejection", "reason": "unknown_tool"}),
        json!({"message": "call", "level": "WARN", "outcome": "failure", "reason": "failed"}),
        json!({"message": "call", "level": "WARN", "outcome": "rejection", "reason": "unprotected"}),
        json!({"message": "a secret cannot be read", "level": "ERROR"}),
    ];
    for (filter, metric, value, counted) in [
        ("ErrorFilter", "LoggedErrors", "1", &[3, 4][..]),
        ("RefusedFilter", "Refusals", "1", &[1, 3]),
        ("NotRefusedFilter", "Refusals", "0", &[0, 2]),
    ] {
        let properties = properties(filter, &[]);
        let pattern = properties["FilterPattern"].as_str().unwrap();
        let found = (0..lines.len()).filter(|index| is_counted(pattern, &lines[*index]));
        assert_eq!(found.collect::<Vec<_>>(), counted, "{filter}");
        let transformation = &properties["MetricTransformations"][0];
        assert_eq!(transformation["MetricName"], metric);
        assert_eq!(transformation["MetricValue"], value);
        assert_eq!(properties["LogGroupName"], json!({"Ref": "ToolboxLog"}));
    }
    // Another test compares the documented reasons with those that are logged.
    let documented: BTreeSet<_> = table("reason")
        .iter()
        .flat_map(|row| quoted(&row[0]))
        .collect();
    let errors = properties("ErrorFilter", &[]);
    let reasons = errors["FilterPattern"].as_str().unwrap();
    let reasons = reasons.split("$.reason = \"").skip(1);
    for reason in reasons.map(|it| it.split('"').next().unwrap()) {
        assert!(documented.contains(reason), "{reason}");
    }
}
