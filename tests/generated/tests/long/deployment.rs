//! What `sam deploy` makes of a project: the function, at a URL, and what else its commands read.
//!
//! An emulator takes the place of AWS. It makes the secrets, the tables and the log of the expanded
//! template, and says what the function's variables are.

use std::{collections::BTreeMap, fs, path::PathBuf, process::Command};

use serde_json::{Map, Value, json};
use test_support::{
    aws::{CREDENTIALS, Emulator},
    function_url::FunctionUrl,
    repository,
    sam::{Parameters, Template},
};

use crate::{Project, of_type, terminal::Terminal};

/// The kinds of resources that the emulator makes of a template.
const MADE: [&str; 2] = ["AWS::DynamoDB::Table", "AWS::Logs::LogGroup"];

/// An account of AWS.
pub(super) struct Account {
    emulator: Emulator,
}

impl Account {
    /// Opens an account, which commands in this terminal reach.
    pub(super) async fn open(terminal: &mut Terminal) -> Self {
        let emulator = Emulator::start().await;
        for (name, value) in CREDENTIALS {
            terminal.set(name, value);
        }
        terminal.set("AWS_DEFAULT_REGION", "us-east-1");
        terminal.set("AWS_ENDPOINT_URL", emulator.url());
        let cli = repository("target/venv-aws/bin").canonicalize();
        terminal.add_to_path(&cli.expect("the AWS CLI is not installed; run tests/all"));
        Self { emulator }
    }

    /// Deploys the template in the terminal's folder, with a function that runs a program. `others` are
    /// variables with which the test redirects its requests.
    pub(super) async fn deploy(
        &self,
        terminal: &mut Terminal,
        program: &mut Command,
        parameters: &Parameters<'_>,
        others: &[(&str, &str)],
    ) -> FunctionUrl {
        let project = Project::at(terminal.folder().to_owned());
        let template = Template::transform(&project.folder.join("template.yaml"));
        let resources = template.resources(parameters);
        let mut stack = Stack::of(&project, &template, &resources, parameters);
        let variables = &resources["Function"]["Properties"]["Environment"]["Variables"];
        let variables = variables.as_object().unwrap();
        let values = stack.apply(terminal, "create-stack", variables.values());
        stack.generate_secrets(terminal, &resources);
        let mut environment = CREDENTIALS.to_vec();
        environment.push(("AWS_ENDPOINT_URL", self.emulator.url()));
        environment.push(("AWS_LAMBDA_LOG_FORMAT", "JSON"));
        let names = variables.keys().map(|name| &**name);
        environment.extend(names.zip(values.iter().map(|value| &**value)));
        environment.extend(others);
        let function = FunctionUrl::start(program, &environment).await;
        let url = json!(format!("{}/", function.url));
        stack.apply(terminal, "update-stack", [&url]);
        function
    }
}

/// Takes a line of the function's into its log.
pub(super) fn log(terminal: &mut Terminal, line: &str) {
    let project = Project::at(terminal.folder().to_owned());
    let group = format!(
        "aws cloudformation describe-stack-resource --stack-name {} --logical-resource-id Log \
         --query StackResourceDetail.PhysicalResourceId --output text",
        project.name
    );
    let group = terminal.type_line(&group);
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let event = json!([{"timestamp": now.unwrap().as_millis(), "message": line}]).to_string();
    fs::write(project.folder.join("log.json"), event).unwrap();
    let stream = format!("--log-group-name '{group}' --log-stream-name instance");
    terminal.type_line(&format!("aws logs create-log-stream {stream}"));
    terminal.type_line(&format!(
        "aws logs put-log-events {stream} --log-events file://log.json"
    ));
}

/// The stack of a project.
struct Stack {
    name: String,
    file: PathBuf,
    json: Value,
    parameters: String,
}

impl Stack {
    fn of(
        project: &Project,
        template: &Template,
        resources: &BTreeMap<&str, Value>,
        parameters: &Parameters<'_>,
    ) -> Self {
        let resources = resources.iter();
        let made = resources.filter(|(_, it)| MADE.iter().any(|kind| it["Type"] == *kind));
        // The conditions hold: `resources` has no others.
        let made = made.map(|(name, it)| {
            let made = json!({"Type": it["Type"], "Properties": it["Properties"]});
            ((*name).to_owned(), made)
        });
        let made: Map<_, _> = made.collect();
        let given = parameters.iter();
        let given = given.map(|(name, it)| format!(" ParameterKey={name},ParameterValue='{it}'"));
        let given: String = given.collect();
        Self {
            name: project.name.clone(),
            file: project.folder.join("stack.json"),
            json: json!({"Parameters": template.json["Parameters"], "Resources": made}),
            parameters: if given.is_empty() {
                given
            } else {
                format!("--parameters{given}")
            },
        }
    }

    fn generate_secrets(&self, terminal: &mut Terminal, resources: &BTreeMap<&str, Value>) {
        for secret in of_type(resources, "AWS::SecretsManager::Secret") {
            let name = secret["Name"]["Fn::Sub"].as_str().unwrap();
            let name = name.replace("${AWS::StackName}", &self.name);
            terminal.type_line(&format!(
                "aws secretsmanager create-secret --name {name} --secret-string \"$(openssl rand -hex 32)\""
            ));
        }
    }

    /// Creates or updates the stack with these values as its outputs. Returns the values without
    /// references. The first output is the one that the commands of the guides read.
    fn apply<'a>(
        &mut self,
        terminal: &mut Terminal,
        command: &str,
        values: impl IntoIterator<Item = &'a Value>,
    ) -> Vec<String> {
        let values = values.into_iter().enumerate();
        let outputs =
            values.map(|(number, it)| (format!("Output{number:03}"), json!({"Value": it})));
        self.json["Outputs"] = outputs.collect::<Map<_, _>>().into();
        fs::write(&self.file, self.json.to_string()).unwrap();
        let Self {
            name, parameters, ..
        } = self;
        terminal.type_line(&format!(
            "aws cloudformation {command} --stack-name {name} {parameters} --template-body file://stack.json"
        ));
        let outputs = format!(
            "aws cloudformation describe-stacks --stack-name {name} \
             --query 'sort_by(Stacks[0].Outputs, &OutputKey)[].OutputValue'"
        );
        serde_json::from_str(&terminal.type_line(&outputs)).unwrap()
    }
}
