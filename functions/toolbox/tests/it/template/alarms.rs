//! Every alarm of `template.yaml` is set off, and stays calm otherwise; the dashboard has the metrics
//! that the library prints.

use std::{collections::BTreeSet, fs};

use serde_json::{Value, json};
use test_support::{
    documents::{quoted, table},
    lambda::{LONG, calling, invoke_on},
    sam::of_type,
};

use super::{
    cloudwatch::{Metric, Metrics},
    template,
};
use crate::support::{repository, toolbox};

/// Parameters with which every alarm exists: first those of an HTTP API.
const DOORS: [&[(&str, &str)]; 2] = [
    &[
        ("Access", "http-api"),
        ("DeployFigma", "yes"),
        ("DeployHello", "yes"),
        ("DirectCalls", "direct"),
        ("GoogleClientId", "1234.apps.googleusercontent.com"),
        ("Quotas", "caller=60/minute"),
    ],
    &[("Access", "function-url"), ("Tasks", "yes")],
];

/// Returns a metric of a service, as that service's documentation names it.
fn metric(namespace: &str, name: &str, dimensions: &[(&str, &str)]) -> Metric {
    let dimensions = dimensions
        .iter()
        .map(|(name, value)| ((*name).into(), (*value).into()));
    (namespace.into(), name.into(), dimensions.collect())
}

/// An alarm on a service's metric, values of one minute that set it off, and values that do not.
type Case = (&'static str, Metric, &'static [f64], &'static [f64]);

/// The metrics, from the documentation of each service:
/// "Types of metrics for Lambda functions" and "Monitoring Lambda function URLs" of AWS Lambda;
/// "Working with metrics for HTTP APIs" of API Gateway; "DynamoDB metrics and dimensions";
/// "Available CloudWatch metrics for Amazon SQS".
fn cases(has_tasks: bool) -> Vec<Case> {
    let lambda = |function, name| metric("AWS/Lambda", name, &[("FunctionName", function)]);
    let table = |table, name| metric("AWS/DynamoDB", name, &[("TableName", table)]);
    let operation = |table, operation| {
        let dimensions = [("TableName", table), ("Operation", operation)];
        metric("AWS/DynamoDB", "SystemErrors", &dimensions)
    };
    let queue = [("QueueName", "FailedInvocations")];
    // In milliseconds. The toolbox is stopped after 23 seconds, and with tasks after 15 minutes.
    let (slow, fast): (&[f64], &[f64]) = if has_tasks {
        (&[5.0, 850_000.0], &[5.0, 600_000.0])
    } else {
        (&[5.0, 22_700.0], &[5.0, 19_000.0])
    };
    vec![
        (
            "ToolboxErrors",
            lambda("Toolbox", "Errors"),
            &[0.0, 1.0],
            &[0.0, 0.0],
        ),
        ("HelloErrors", lambda("Hello", "Errors"), &[1.0], &[0.0]),
        ("FigmaErrors", lambda("Figma", "Errors"), &[1.0], &[0.0]),
        (
            "ToolboxThrottles",
            lambda("Toolbox", "Throttles"),
            &[1.0],
            &[0.0],
        ),
        (
            "HelloThrottles",
            lambda("Hello", "Throttles"),
            &[1.0],
            &[0.0],
        ),
        (
            "FigmaThrottles",
            lambda("Figma", "Throttles"),
            &[1.0],
            &[0.0],
        ),
        ("ToolboxDuration", lambda("Toolbox", "Duration"), slow, fast),
        (
            "HelloDuration",
            lambda("Hello", "Duration"),
            &[22_700.0],
            &[5.0],
        ),
        (
            "FigmaDuration",
            lambda("Figma", "Duration"),
            &[22_700.0],
            &[5.0],
        ),
        (
            "ApiErrors",
            metric("AWS/ApiGateway", "5xx", &[("ApiId", "ToolboxApi")]),
            &[0.0, 1.0, 1.0, 1.0, 1.0, 1.0],
            &[0.0, 1.0, 1.0, 1.0, 1.0],
        ),
        (
            "UrlErrors",
            lambda("Toolbox", "Url5xxCount"),
            &[2.0, 3.0],
            &[2.0, 2.0],
        ),
        (
            "CallsThrottled",
            table("Calls", "WriteThrottleEvents"),
            &[1.0],
            &[],
        ),
        ("CallsFailing", operation("Calls", "PutItem"), &[1.0], &[]),
        (
            "GrantsThrottled",
            table("Grants", "ReadThrottleEvents"),
            &[1.0],
            &[],
        ),
        ("GrantsFailing", operation("Grants", "GetItem"), &[1.0], &[]),
        (
            "InvocationsFailed",
            metric("AWS/SQS", "ApproximateNumberOfMessagesVisible", &queue),
            &[0.0, 1.0, 0.0],
            &[0.0, 0.0],
        ),
        (
            "InvocationsDropped",
            lambda("Toolbox", "AsyncEventsDropped"),
            &[1.0],
            &[0.0],
        ),
    ]
}

/// The lines of the log that calls write.
struct Lines {
    success: String,
    rejection: String,
    failure: String,
    quota: String,
    /// With the level ERROR.
    error: String,
    /// A rejection that only the owner can remove.
    unprotected: String,
}

impl Lines {
    /// Records lines of the function, as it is deployed.
    async fn record() -> Self {
        let call = |tool: &str, input: Value| {
            (
                calling(
                    &json!({"tool_id": tool, "call_id": tool, "input": input}),
                    &[],
                ),
                LONG,
            )
        };
        let add = call("Calculator.Add", json!({"a": 10, "b": 5}));
        let send = call("SMS.Send", json!({"to": "+15005550006", "message": "Hi"}));
        let unknown = call("Calculator.Plus", json!({}));
        // No API and no table can be reached.
        let nothing = "http://127.0.0.1:9";
        let anyone = [
            ("TOOLS_AUTH", "none"),
            ("TWILIO_API_KEY", "AC1:0123456789:+15005550009"),
            ("TWILIO_URL", nothing),
        ];
        let table = [
            ("TOOLS_IDEMPOTENCY", "dynamodb"),
            ("TOOLS_IDEMPOTENCY_TABLE", "Calls"),
            ("AWS_ENDPOINT_URL", nothing),
            ("AWS_REGION", "us-east-1"),
            ("AWS_ACCESS_KEY_ID", "AKIA0123456789"),
            ("AWS_SECRET_ACCESS_KEY", "aws-0123456789"),
        ];
        let quotas = [("TOOLS_QUOTAS", "all=1/day")];
        let keyed = [("TOOLS_AUTH", "api-key")];
        let body = json!({"tool_id": "Calculator.Add"});
        let with_a_key = (calling(&body, &[("authorization", "Bearer key")]), LONG);
        let lines = async |events: &[(Value, _)], environment: &[(&str, &str)]| {
            invoke_on(&mut toolbox(), events, environment).await.1
        };
        let with = |more: &[(&'static str, &'static str)]| [&anyone[..], more].concat();
        let calls = lines(&[add.clone(), unknown, send.clone()], &anyone).await;
        let limited = lines(&[add.clone(), add], &with(&quotas)).await;
        let unprotected = lines(&[send], &with(&table)).await;
        // No secret has the API key.
        let without_key = lines(&[with_a_key], &keyed).await;
        let find = |lines: &[String], field: &str, value: &str| {
            let has = |line: &&String| {
                let line: Value = serde_json::from_str(line).unwrap();
                line[field] == value
            };
            lines
                .iter()
                .find(has)
                .unwrap_or_else(|| panic!("no {value} in {lines:#?}"))
                .clone()
        };
        Self {
            success: find(&calls, "outcome", "success"),
            rejection: find(&calls, "outcome", "rejection"),
            failure: find(&calls, "outcome", "failure"),
            quota: find(&limited, "reason", "quota_exceeded"),
            error: find(&without_key, "level", "ERROR"),
            unprotected: find(&unprotected, "reason", "unprotected"),
        }
    }
}

/// An alarm on the log, lines with their minutes that set it off, and lines that do not.
type LogCase<'a> = (&'static str, Vec<(u64, &'a str)>, Vec<(u64, &'a str)>);

fn log_cases(lines: &Lines) -> Vec<LogCase<'_>> {
    let Lines {
        success,
        rejection,
        failure,
        quota,
        error,
        unprotected,
    } = lines;
    let harmless = vec![(14, &**success), (14, &**rejection), (14, &**failure)];
    vec![
        (
            "ToolboxLoggedErrors",
            vec![(14, &**error)],
            harmless.clone(),
        ),
        (
            "ToolboxLoggedErrors",
            vec![(14, &**unprotected)],
            harmless.clone(),
        ),
        ("HelloLoggedErrors", vec![(14, &**error)], harmless.clone()),
        ("FigmaLoggedErrors", vec![(14, &**error)], harmless.clone()),
        ("ToolboxQuotas", vec![(14, &**quota)], harmless),
        (
            "ToolboxRefuses",
            vec![
                (1, &**rejection),
                (6, &**rejection),
                (7, &**rejection),
                (11, &**rejection),
            ],
            // A failure is no refusal.
            vec![
                (1, &**rejection),
                (6, &**rejection),
                (7, &**failure),
                (11, &**rejection),
            ],
        ),
        // A single burst of wrong calls.
        (
            "ToolboxRefuses",
            vec![(0, &**rejection), (9, &**rejection), (14, &**rejection)],
            vec![(14, &**rejection); 1000],
        ),
        (
            "ToolboxFails",
            // Refused calls say nothing about the tools.
            vec![
                (1, &**failure),
                (6, &**failure),
                (7, &**rejection),
                (11, &**failure),
            ],
            vec![
                (1, &**failure),
                (6, &**failure),
                (7, &**success),
                (11, &**failure),
            ],
        ),
        (
            "ToolboxFails",
            vec![(1, &**failure), (6, &**failure), (11, &**failure)],
            vec![(1, &**rejection), (6, &**rejection), (11, &**rejection)],
        ),
    ]
}

/// In seconds: the end of a quarter of an hour, in which all of this happens.
const END: u64 = 900;

#[tokio::test]
#[ignore = "needs aws-sam-translator; run tests/all"]
async fn each_alarm_is_set_off_by_what_it_is_for() {
    let lines = Lines::record().await;
    let mut quiet = BTreeSet::new();
    for parameters in DOORS {
        let resources = template().resources(parameters);
        let alarms = of_type(&resources, "AWS::CloudWatch::Alarm");
        let filters = of_type(&resources, "AWS::Logs::MetricFilter");
        quiet.extend(alarms.keys().map(|it| (*it).to_owned()));
        let mut check = |name: &str, sets_off: &Metrics, does_not: &Metrics| {
            let Some(alarm) = alarms.get(name) else {
                return;
            };
            assert!(sets_off.is_alarming(alarm, END), "{name}: {sets_off:?}");
            assert!(!does_not.is_alarming(alarm, END), "{name}: {does_not:?}");
            assert!(!Metrics::default().is_alarming(alarm, END), "{name}");
            quiet.remove(name);
        };
        for (name, metric, sets_off, does_not) in cases(parameters.contains(&("Tasks", "yes"))) {
            let [sets_off, does_not] = [sets_off, does_not].map(|values| {
                let mut metrics = Metrics::default();
                for (second, value) in (END - 60..END).zip(values) {
                    metrics.put(metric.clone(), second, *value);
                }
                metrics
            });
            check(name, &sets_off, &does_not);
        }
        for (name, sets_off, does_not) in log_cases(&lines) {
            // Each function has its own log.
            let log = ["Hello", "Figma", "Toolbox"]
                .into_iter()
                .find(|it| name.starts_with(it));
            let log = json!({"Ref": format!("{}Log", log.unwrap())});
            let [sets_off, does_not] = [sets_off, does_not].map(|events| {
                let mut metrics = Metrics::default();
                for (minute, line) in events {
                    for filter in filters.values().filter(|it| it["LogGroupName"] == log) {
                        metrics.filter(filter, line, minute * 60);
                    }
                }
                metrics
            });
            check(name, &sets_off, &does_not);
        }
    }
    // Also those of other parameters.
    let all = template().json["Resources"].as_object().unwrap().iter();
    let all = all.filter(|(_, it)| it["Type"] == "AWS::CloudWatch::Alarm");
    let all: BTreeSet<_> = all.map(|(name, _)| name.clone()).collect();
    let known = cases(false).iter().map(|it| it.0).collect::<BTreeSet<_>>();
    let known = known
        .into_iter()
        .chain(log_cases(&lines).into_iter().map(|it| it.0));
    assert_eq!(all, known.map(str::to_owned).collect());
    assert_eq!(quiet, BTreeSet::new(), "no case sets these alarms off");
}

#[test]
#[ignore = "needs aws-sam-translator; run tests/all"]
fn the_page_lists_the_alarms_and_their_number() {
    let alarms = template().json["Resources"].as_object().unwrap().iter();
    let alarms = alarms.filter(|(_, it)| it["Type"] == "AWS::CloudWatch::Alarm");
    let names: BTreeSet<_> = alarms.map(|(name, _)| name.clone()).collect();
    let of_examples = |name: &&String| ["Hello", "Figma"].iter().any(|it| name.starts_with(it));
    let documented: BTreeSet<_> = table("alarm")
        .iter()
        .flat_map(|row| quoted(&row[0]))
        .collect();
    let of_toolbox = names.iter().filter(|it| !of_examples(it)).cloned();
    assert_eq!(of_toolbox.collect::<BTreeSet<_>>(), documented);

    // The numbers in docs/costs.md.
    let count = |parameters: &[(&str, &str)]| {
        let resources = template().resources(parameters);
        of_type(&resources, "AWS::CloudWatch::Alarm").len()
    };
    assert_eq!(count(&[]), 9);
    for (parameter, value, more) in [
        ("Access", "function-url", 0),
        ("GoogleClientId", "1234.apps.googleusercontent.com", 2),
        ("Tasks", "yes", 2),
        ("DirectCalls", "direct", 2),
        ("Quotas", "all=1/day", 1),
        ("DeployHello", "yes", 4),
        ("DeployFigma", "yes", 4),
    ] {
        assert_eq!(count(&[(parameter, value)]), 9 + more, "{parameter}");
    }

    // An alarm costs 10 cents a month, and a secret 40.
    let resources = template().resources(&[]);
    let secrets = of_type(&resources, "AWS::SecretsManager::Secret").len();
    let cents = 10 * count(&[]) + 40 * secrets;
    let page = fs::read_to_string(repository("docs/costs.md")).unwrap();
    let stated = format!("costs ${}.{:02} a month", cents / 100, cents % 100);
    assert!(page.contains(&stated), "{stated}");
}

/// Alarms notify an address and a topic, if there are any.
#[test]
#[ignore = "needs aws-sam-translator; run tests/all"]
fn each_alarm_notifies_whom_the_parameters_name() {
    let topic = "arn:aws:sns:us-east-1:123456789012:alarms";
    for (email, arn, actions) in [
        ("", "", json!([])),
        ("ops@example.com", "", json!([{"Ref": "Alarms"}])),
        ("", topic, json!([topic])),
        ("ops@example.com", topic, json!([{"Ref": "Alarms"}, topic])),
    ] {
        for door in DOORS {
            let parameters = [door, &[("AlarmEmail", email), ("AlarmTopic", arn)]].concat();
            let resources = template().resources(&parameters);
            for (name, alarm) in of_type(&resources, "AWS::CloudWatch::Alarm") {
                assert_eq!(alarm["AlarmActions"], actions, "{name}");
            }
            let subscriptions = resources
                .get("Alarms")
                .map(|it| &it["Properties"]["Subscription"]);
            let expected = json!([{"Protocol": "email", "Endpoint": email}]);
            assert_eq!(subscriptions, (!email.is_empty()).then_some(&expected));
        }
    }
}

/// With a higher level, the log has no lines of successful calls: all calls would seem refused.
#[test]
#[ignore = "needs aws-sam-translator; run tests/all"]
fn alarms_on_all_calls_need_the_lines_of_all_calls() {
    for level in ["TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL"] {
        let resources = template().resources(&[("LogLevel", level)]);
        let has_lines = ["TRACE", "DEBUG", "INFO"].contains(&level);
        for name in ["ToolboxRefuses", "ToolboxFails"] {
            assert_eq!(resources.contains_key(name), has_lines, "{level}");
        }
        assert!(resources.contains_key("ToolboxLoggedErrors"));
    }
}

/// Returns the dashboard, with the names of resources in place of their ids.
fn dashboard(access: &str, namespace: &str) -> Value {
    let parameters = [("Access", access)];
    let body = template()
        .resource("ToolboxDashboard", &parameters)
        .unwrap();
    let [text, variables] = &body["Properties"]["DashboardBody"]["Fn::Sub"]
        .as_array()
        .unwrap()[..]
    else {
        panic!("{body}");
    };
    let requests = variables["Requests"]["Fn::Sub"].as_str().unwrap();
    let text = text.as_str().unwrap().replace("${Requests}", requests);
    let text = text
        .replace("${AWS::StackName}", namespace)
        .replace("${AWS::Region}", "us-east-1");
    for part in text.split("${").skip(1) {
        let name = part.split_once('}').unwrap().0;
        assert!(template().resource(name, &parameters).is_some(), "{name}");
    }
    serde_json::from_str(&text).unwrap()
}

/// A metric's name and its dimensions.
type Searched = (String, BTreeSet<String>);

/// Checks that the dashboard has all metrics in these lines of the library, and no others.
pub(crate) fn assert_on_dashboard(namespace: &str, lines: &[Value]) {
    let directives = lines
        .iter()
        .flat_map(|it| it["_aws"]["CloudWatchMetrics"].as_array().unwrap());
    let mut printed: BTreeSet<Searched> = BTreeSet::new();
    for directive in directives {
        assert_eq!(directive["Namespace"], namespace);
        let texts = directive["Dimensions"][0].as_array().unwrap().iter();
        let dimensions: BTreeSet<_> = texts.map(|it| it.as_str().unwrap().to_owned()).collect();
        for metric in directive["Metrics"].as_array().unwrap() {
            printed.insert((
                metric["Name"].as_str().unwrap().to_owned(),
                dimensions.clone(),
            ));
        }
    }
    for access in ["http-api", "function-url"] {
        let mut shown: BTreeSet<Searched> = BTreeSet::new();
        let dashboard = dashboard(access, namespace);
        for widget in dashboard["widgets"].as_array().unwrap() {
            for metric in widget["properties"]["metrics"].as_array().unwrap() {
                if let Some(expression) = metric[0]["expression"].as_str() {
                    shown.insert(searched(expression, namespace));
                }
            }
        }
        assert_eq!(shown, printed);
    }
}

/// Returns what `SEARCH('{"NAMESPACE",DIMENSION,…} MetricName="NAME"', 'STATISTIC', PERIOD)` finds.
fn searched(expression: &str, namespace: &str) -> Searched {
    let schema = expression.strip_prefix("SEARCH('{").unwrap();
    let (schema, rest) = schema.split_once("} MetricName=\"").unwrap();
    let (name, rest) = rest.split_once("\"', '").unwrap();
    assert!(
        ["Sum', 300)", "p50', 300)", "p99', 300)"].contains(&rest),
        "{expression}"
    );
    let dimensions = schema.strip_prefix(&format!("\"{namespace}\",")).unwrap();
    (
        name.to_owned(),
        dimensions.split(',').map(str::to_owned).collect(),
    )
}

/// The other metrics of the dashboard are those of services.
#[test]
#[ignore = "needs aws-sam-translator; run tests/all"]
fn the_dashboard_shows_the_door_the_function_and_the_table() {
    for (access, door) in [
        (
            "http-api",
            [
                "AWS/ApiGateway Count",
                "AWS/ApiGateway 4xx",
                "AWS/ApiGateway 5xx",
            ],
        ),
        (
            "function-url",
            [
                "AWS/Lambda UrlRequestCount",
                "AWS/Lambda Url4xxCount",
                "AWS/Lambda Url5xxCount",
            ],
        ),
    ] {
        let dashboard = dashboard(access, "stack");
        let widgets = dashboard["widgets"].as_array().unwrap().iter();
        let metrics = widgets.flat_map(|it| it["properties"]["metrics"].as_array().unwrap());
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let of_services = metrics.filter(|it| it[0].is_string());
        let shown: BTreeSet<_> = of_services
            .map(|it| format!("{} {}", text(&it[0]), text(&it[1])))
            .collect();
        let others = [
            "AWS/Lambda Invocations",
            "AWS/Lambda Errors",
            "AWS/Lambda Throttles",
            "AWS/Lambda ConcurrentExecutions",
            "AWS/DynamoDB ConsumedWriteCapacityUnits",
            "AWS/DynamoDB ConsumedReadCapacityUnits",
            "AWS/DynamoDB WriteThrottleEvents",
        ];
        let expected = door.into_iter().chain(others).map(str::to_owned).collect();
        assert_eq!(shown, expected);
    }
    for (shown, metrics, exists) in [
        ("yes", "cloudwatch", true),
        ("yes", "none", false),
        ("no", "cloudwatch", false),
    ] {
        let parameters = [("Dashboard", shown), ("Metrics", metrics)];
        let dashboard = template().resource("ToolboxDashboard", &parameters);
        assert_eq!(dashboard.is_some(), exists);
    }
}
