//! Every pair of values of two parameters, in combinations that are transformed, resolved and linted.

use std::{collections::BTreeMap, fs, process::Command, sync::LazyLock};

use serde_json::{Value, json};
use test_support::{
    installed, repository,
    sam::{Parameters, Template},
};

use super::{
    pairs::{Choice, Combination, Pairs, Rule},
    stdout_of, template,
};

/// Values of the parameters that do not list theirs, besides their defaults.
const VALUES: [(&str, &[&str]); 36] = [
    ("AlarmEmail", &["ops@example.com"]),
    ("AlarmTopic", &["arn:aws:sns:us-east-1:123456789012:alarms"]),
    ("ApiBurst", &["5"]),
    ("ApiKeyIds", &["TOOLS_API_KEY|TOOLS_API_KEY_2,PARTNER_KEY"]),
    ("ApiRate", &["2.5"]),
    ("AuthorizerAudiences", &["api://tools,tools", "tools"]),
    (
        "AuthorizerIssuer",
        &["https://id.example/pool", "https://id.example"],
    ),
    ("BasePath", &["/agents/v1"]),
    ("CorsOrigin", &["https://app.example.com"]),
    ("FigmaToken", &["figd_0123456789"]),
    (
        "GatewayToolSchema",
        &["s3://bucket/tools-1.json", "s3://bucket/tools-2.json"],
    ),
    ("GitHubClientId", &["Iv1.0123456789abcdef"]),
    ("GoogleClientId", &["1234.apps.googleusercontent.com"]),
    ("GrantKeyIds", &["TOOLS_OAUTH_KEY_2,TOOLS_OAUTH_KEY"]),
    ("JwtAudiences", &["tools,agents"]),
    ("JwtSecretIds", &["TOOLS_JWT_SECRET|NEXT"]),
    (
        "KmsKeyArn",
        &["arn:aws:kms:us-east-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"],
    ),
    ("Memory", &["128", "10240"]),
    (
        "MicrosoftClientId",
        &["6731de76-14a6-49ae-97bc-6eba6914391e"],
    ),
    ("OidcAudiences", &["api://tools,https://tools.example"]),
    ("OidcClientIds", &["one,two"]),
    (
        "OidcIssuers",
        &["https://id.example,https://id.example/realm"],
    ),
    ("OidcScopes", &["tools.call,mail.read"]),
    ("OidcUserClaim", &["email"]),
    ("PublicUrl", &["https://tools.example/agents"]),
    (
        "Quotas",
        &["caller=60/minute,user=1000/day,tool:SMS.Send=50/day,tool=5/minute,all=10000/day"],
    ),
    (
        "SecurityGroupIds",
        &["sg-01234567,sg-89abcdef", "sg-01234567"],
    ),
    ("SignInAllow", &["organization:acme,group:Tools Team"]),
    ("SignInClientId", &["toolbox"]),
    ("SignInClients", &["claude.ai,http://localhost/callback"]),
    ("SignInIssuer", &["https://id.example/pool"]),
    ("SignInScopes", &["tools.call"]),
    ("SignInUserClaim", &["cognito:username"]),
    ("SlackClientId", &["1234567890.1234567890"]),
    (
        "SubnetIds",
        &["subnet-01234567,subnet-89abcdef", "subnet-01234567"],
    ),
    ("ToolboxReservedConcurrency", &["20"]),
];

/// A list of more values is no part of the pairs: each value occurs, in some combination.
const MOST_VALUES: usize = 10;

/// The parameters with their values, the default first: those that are part of the pairs, and the
/// others.
static CHOICES: LazyLock<(Vec<Choice<'static>>, Vec<Choice<'static>>)> = LazyLock::new(|| {
    let given: BTreeMap<_, _> = VALUES.into_iter().collect();
    let parameters = template().json["Parameters"].as_object().unwrap();
    let choices = parameters.iter().map(|(name, parameter)| {
        let listed = parameter["AllowedValues"].as_array().into_iter().flatten();
        let listed = listed.map(|it| &*text_of(it).leak());
        let given = given.get(&**name).into_iter().copied().flatten().copied();
        let mut values = vec![template().default_of(name)];
        let others: Vec<_> = listed.chain(given).filter(|it| *it != values[0]).collect();
        assert!(
            !others.is_empty(),
            "{name} has no other value than its default"
        );
        values.extend(others);
        (&**name, values)
    });
    choices.partition(|(_, values)| values.len() <= MOST_VALUES)
});

fn pairs() -> Pairs<'static> {
    let rules = template().json["Rules"].as_object().unwrap().values();
    let assertions = rules.flat_map(|rule| rule["Assertions"].as_array().unwrap());
    let rules = assertions.map(|it| rule_of(&it["Assert"]));
    Pairs::new(&CHOICES.0, Rule::All(rules.collect()))
}

fn rule_of(condition: &'static Value) -> Rule<'static> {
    let (function, arguments) = condition.as_object().unwrap().iter().next().unwrap();
    let arguments = arguments.as_array().unwrap();
    let mut rules = arguments.iter().map(rule_of);
    match &**function {
        "Fn::Equals" => {
            let [name, value] =
                [&arguments[0]["Ref"], &arguments[1]].map(|it| it.as_str().unwrap());
            Rule::Is(name, value)
        }
        "Fn::Not" => Rule::Not(Box::new(rules.next().unwrap())),
        "Fn::And" => Rule::All(rules.collect()),
        "Fn::Or" => Rule::Any(rules.collect()),
        other => panic!("{other}"),
    }
}

fn text_of(value: &Value) -> String {
    value.as_str().map_or(value.to_string(), str::to_owned)
}

/// The combinations, each with what SAM makes of the template.
static COMBINATIONS: LazyLock<Vec<(Combination<'static>, Template)>> = LazyLock::new(|| {
    let mut rows = pairs().combinations();
    for (number, row) in rows.iter_mut().enumerate() {
        let others = CHOICES.1.iter();
        row.extend(others.map(|(name, values)| (*name, values[number % values.len()])));
    }
    let templates = Template::transform_each(&repository("template.yaml"), &rows);
    rows.into_iter().zip(templates).collect()
});

/// Returns a combination with another value of a parameter, if the rules accept it.
fn changed(
    combination: &Combination<'static>,
    name: &str,
    value: &'static str,
) -> Option<Combination<'static>> {
    let mut changed = combination.clone();
    let mut parameter = changed.iter_mut().find(|it| it.0 == name);
    let given = parameter.as_mut()?;
    given.1 = value;
    template().accepts(&changed).then_some(changed)
}

#[test]
#[ignore = "needs aws-sam-translator; run tests/all"]
fn every_pair_of_values_occurs_that_the_rules_accept() {
    let rows: Vec<_> = COMBINATIONS.iter().map(|(row, _)| row.clone()).collect();
    assert_eq!(pairs().missing_in(&rows), [""; 0]);
    for row in &rows {
        assert!(template().accepts(row), "{row:?}");
        assert_eq!(row.len(), CHOICES.0.len() + CHOICES.1.len());
    }
    for (name, values) in &CHOICES.1 {
        let occurs = |value: &&str| rows.iter().any(|row| row.contains(&(name, value)));
        assert!(values.iter().all(occurs), "{name}");
    }
}

#[test]
#[ignore = "needs aws-sam-translator; run tests/all"]
fn parameters_allow_what_is_right_and_nothing_else() {
    const WRONG: [(&str, &[&str]); 15] = [
        ("AlarmEmail", &["ops", "a@b c", "a@b,c@d"]),
        ("ApiBurst", &["0"]),
        ("ApiKeyIds", &["A,", "|A", "A B", "A/B"]),
        (
            "AuthorizerIssuer",
            &["http://id.example", "https://id.example?a"],
        ),
        ("BasePath", &["agents", "/", "/agents/"]),
        ("GitHubClientId", &["a b"]),
        ("GrantKeyIds", &["A|B"]),
        (
            "KmsKeyArn",
            &[
                "alias/mine",
                "arn:aws:kms:us-east-1:123456789012:alias/mine",
            ],
        ),
        ("Memory", &["127", "10241"]),
        (
            "PublicUrl",
            &[
                "tools.example",
                "http://tools.example",
                "https://tools.example?a",
            ],
        ),
        (
            "Quotas",
            &[
                "60/minute",
                "caller=60",
                "caller+tool=1/day",
                "caller=60/second",
                "caller=60/hour",
                "callers=1/day",
                "caller=1/day caller=1/minute",
                "tool:=1/day",
            ],
        ),
        ("SecurityGroupIds", &["group"]),
        ("SignInAllow", &["organization:", "acme", "everyone"]),
        ("SubnetIds", &["subnet"]),
        ("ToolboxReservedConcurrency", &["-1"]),
    ];
    let is_valid = |name: &str, value: &str| {
        let parameter = &template().json["Parameters"][name];
        let is_number = parameter["Type"] == "Number";
        let value = if is_number {
            serde_json::from_str(value).unwrap()
        } else {
            value.into()
        };
        let mut schema = json!({});
        let keywords = [
            ("AllowedPattern", "pattern"),
            ("MinValue", "minimum"),
            ("MaxValue", "maximum"),
        ];
        for (constraint, keyword) in keywords {
            if let Some(limit) = parameter.get(constraint) {
                schema[keyword] = limit.clone();
            }
        }
        jsonschema::is_valid(&schema, &value)
    };
    for (name, values) in VALUES {
        assert!(is_valid(name, template().default_of(name)), "{name}");
        for value in values {
            assert!(is_valid(name, value), "{name}={value}");
        }
    }
    for (name, values) in WRONG {
        for value in values {
            assert!(!is_valid(name, value), "{name}={value}");
        }
    }
}

/// cfn-lint knows neither rules nor which conditions hold together, so it checks what is created.
#[test]
#[ignore = "needs aws-sam-cli; run tests/all"]
fn cfn_lint_accepts_what_each_combination_creates() {
    let folder = repository("target/template/combinations");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    let mut created = Vec::new();
    for (number, (parameters, template)) in COMBINATIONS.iter().enumerate() {
        let mut resources = template.resources(parameters);
        for resource in resources.values_mut() {
            let resource = resource.as_object_mut().unwrap();
            resource.remove("Condition");
            resource.remove("Metadata");
        }
        let path = folder.join(format!("{number}.json"));
        fs::write(&path, json!({"Resources": resources}).to_string()).unwrap();
        created.push(path);
    }
    // Of what SAM makes of the toolbox, only versions are ever replaced (W3011); they keep both policies.
    let mut lint = Command::new(installed("cfn-lint"));
    lint.args(["--ignore-checks", "W3011", "--"]).args(created);
    let stdout = stdout_of(&mut lint);
    assert_eq!(stdout, "");
}

/// A parameter that changes nothing is not used.
#[test]
#[ignore = "needs aws-sam-translator; run tests/all"]
fn each_value_of_each_parameter_changes_what_is_created() {
    let path = repository("template.yaml");
    let mut unused = Vec::new();
    for (name, values) in CHOICES.0.iter().chain(&CHOICES.1) {
        for value in &values[1..] {
            let mut with = COMBINATIONS
                .iter()
                .filter(|(row, _)| row.contains(&(name, value)));
            let has_effect = with.any(|(row, template)| {
                let created = template.resources(row);
                let others = values.iter().filter(|it| *it != value);
                let mut others = others.filter_map(|other| changed(row, name, other));
                others.any(|row| {
                    // SAM itself reads one.
                    let again = (*name == "Deployment").then(|| {
                        Template::transform_each(&path, std::slice::from_ref(&row)).remove(0)
                    });
                    created != again.as_ref().unwrap_or(template).resources(&row)
                })
            });
            if !has_effect {
                unused.push(format!("{name}={value}"));
            }
        }
    }
    assert_eq!(unused, [""; 0]);
}

/// CloudFormation publishes a version if its description changes. Without a new version, callers
/// would keep the old function; and if nothing else has changed, the deployment would fail.
#[test]
#[ignore = "needs aws-sam-translator; run tests/all"]
fn a_version_is_published_exactly_if_a_parameter_changes_the_function() {
    let versions = template().json["Resources"].as_object().unwrap().iter();
    let versions = versions.filter(|(_, it)| it["Type"] == "AWS::Lambda::Version");
    let [(_, version)] = versions.collect::<Vec<_>>()[..] else {
        panic!("one version")
    };
    let description = json!({"Fn::Sub": "Settings ${Settings.VersionNumber}"});
    assert_eq!(version["Properties"]["Description"], description);

    let state = |row: &Parameters<'_>| {
        let mut toolbox = template().resource("Toolbox", row).unwrap();
        // This is no part of a version.
        toolbox["Properties"]
            .as_object_mut()
            .unwrap()
            .remove("ReservedConcurrentExecutions");
        let settings = template().resource("Settings", row).unwrap();
        (toolbox, settings["Properties"]["Content"].clone())
    };
    let (mut published, mut kept) = (0, 0);
    for (row, _) in COMBINATIONS.iter() {
        let before = state(row);
        for (name, values) in CHOICES.0.iter().chain(&CHOICES.1) {
            for value in values {
                let Some(changed) = changed(row, name, value) else {
                    continue;
                };
                let after = state(&changed);
                let is_another = before.0 != after.0;
                assert_eq!(before.1 != after.1, is_another, "{name}={value} in {row:?}");
                *(if is_another {
                    &mut published
                } else {
                    &mut kept
                }) += 1;
            }
        }
    }
    assert!(published > 1000 && kept > 1000, "{published} {kept}");
}
