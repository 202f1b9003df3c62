//! Projects that cargo-lambda generates from `templates/function`, built with this working tree.

use std::{
    collections::BTreeMap,
    fs,
    net::TcpListener,
    path::{Path, PathBuf},
    process::Command,
};

use axum::{Router, http::HeaderMap, routing::get};
use serde_json::{Value, json};
use test_support::{
    Running, installed, isolated, repository,
    sam::{self, Template},
};

/// A generated project.
struct Project {
    name: String,
    folder: PathBuf,
}

impl Project {
    /// Generates a project with the default answers, except for `answers`.
    fn generate(name: &str, answers: &[(&str, &str)]) -> Self {
        Self::generate_from(&repository("templates/function"), name, answers)
    }

    /// Generates a project from another copy of the template.
    fn generate_from(template: &Path, name: &str, answers: &[(&str, &str)]) -> Self {
        let parent = repository("target/template");
        fs::create_dir_all(&parent).unwrap();
        let parent = parent.canonicalize().unwrap();
        let folder = parent.join(name);
        let _ = fs::remove_dir_all(&folder);
        let mut command = Command::new(installed("cargo-lambda").canonicalize().unwrap());
        command.args(["lambda", "new", name, "--no-interactive", "--template"]);
        command.arg(template);
        let library = repository(".").canonicalize().unwrap();
        let library = format!("lambda_tools={}", library.display());
        command.args(["--render-var", &library]);
        for (variable, value) in answers {
            command.args(["--render-var", &format!("{variable}={value}")]);
        }
        stdout_of(command.current_dir(&parent));
        // The versions that are tested, which are also already downloaded.
        fs::copy(repository("Cargo.lock"), folder.join("Cargo.lock")).unwrap();
        let name = name.to_owned();
        Self { name, folder }
    }

    fn text(&self, file: &str) -> String {
        fs::read_to_string(self.folder.join(file)).unwrap()
    }

    /// A command in the project's folder. All projects share what they build, also with this
    /// workspace: most dependencies have the same features.
    fn command(&self, program: impl AsRef<Path>) -> Command {
        let mut command = isolated(Command::new(program.as_ref()));
        command.current_dir(&self.folder);
        command.env("CARGO_NET_OFFLINE", "true");
        command.env("CARGO_TARGET_DIR", built_below());
        command
    }

    fn cargo(&self, arguments: &[&str]) {
        stdout_of(self.command("cargo").args(arguments));
    }

    fn cargo_lambda(&self, command: &str) -> Command {
        let program = installed("cargo-lambda").canonicalize().unwrap();
        let mut cargo_lambda = self.command(program);
        cargo_lambda.args(["lambda", command]);
        cargo_lambda
    }

    /// The program, which has been built.
    fn program(&self) -> Command {
        self.command(built_below().join("debug").join(&self.name))
    }
}

fn built_below() -> PathBuf {
    repository("target").canonicalize().unwrap()
}

fn stdout_of(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}\n{stdout}\n{stderr}");
    stdout
}

/// The URL of a server that plays GitHub, for the token `a-token`.
async fn played_github() -> String {
    let search = async |headers: HeaderMap| {
        assert_eq!(headers["authorization"], "Bearer a-token");
        let issue = json!({"id": 1, "title": "It panics", "html_url": "https://github.com/o/r/1"});
        json!({"total_count": 1, "items": [issue]}).to_string()
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let router = Router::new().route("/search/issues", get(search));
    tokio::spawn(async { axum::serve(listener, router).await });
    url
}

async fn post(url: String, body: &Value) -> Value {
    let request = reqwest::Client::new().post(url);
    let request = request.header("content-type", "application/json");
    let request = request.header("accept", "application/json, text/event-stream");
    let response = request.json(body).send().await.unwrap();
    response.json().await.unwrap()
}

fn mcp_call() -> Value {
    let params = json!({"name": "GitHub_FindIssues", "arguments": {"query": "is:issue panics"}});
    json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
}

async fn answers_locally(project: &Project, github: &str) {
    let mut program = project.program();
    program
        .env("GITHUB_URL", github)
        .env("GITHUB_TOKEN", "a-token");
    let (_running, url) = Running::serving(&mut program);
    let called = post(format!("{url}/mcp"), &mcp_call()).await;
    let found = &called["result"]["structuredContent"];
    assert_eq!(found["items"][0]["title"], "It panics", "{called}");
    let call = json!({"tool_id": "GitHub.FindIssues", "input": {"query": "is:issue panics"}});
    let called = post(format!("{url}/tools/call"), &call).await;
    assert_eq!(&called["value"], found, "{called}");
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

/// With the commands in the project's README.
fn answers_in_the_emulator(project: &Project, github: &str) {
    let port = free_port().to_string();
    let address = ["-A", "127.0.0.1", "-P", &port];
    fs::write(project.folder.join(".env"), "GITHUB_TOKEN=a-token\n").unwrap();
    let mut watch = project.cargo_lambda("watch");
    watch.args(["--env-file", ".env"]).args(address);
    let mut watching = Running::start(watch.env("GITHUB_URL", github));
    watching.line_with("starting Runtime server", 20);
    for event in ["find-issues", "find-issues.mcp"] {
        let mut invoke = project.cargo_lambda("invoke");
        invoke.arg(&project.name).args(address);
        invoke.args(["--data-file", &format!("events/{event}.json")]);
        Running::start(&mut invoke).line_with("It panics", 60);
    }
    // It ends the function as well, which a kill would not.
    watching.signal("INT");
    assert!(watching.has_ended_within(10));
}

/// A setting whose feature is not compiled in.
fn names_the_missing_feature(project: &Project) {
    for (variable, value) in [
        ("TOOLS_SECRETS", "secrets-manager"),
        ("TOOLS_AUTH", "jwt"),
        ("TOOLS_AUTH", "oidc"),
    ] {
        let output = project
            .program()
            .env(variable, value)
            .env("PORT", "0")
            .output();
        let output = output.unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success(), "{variable}={value}");
        let line = format!("lambda_tools = {{ …, features = [\"{value}\"] }}");
        assert!(stderr.contains(&line), "{stderr}");
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs cargo-lambda; run tests/all"]
async fn the_default_project_tests_itself_and_answers() {
    let project = Project::generate("my-tools", &[]);
    let manifest = project.text("Cargo.toml");
    assert!(!manifest.contains("\"jwt\"") && !manifest.contains("secrets-manager"));
    project.cargo(&["fmt", "--check"]);
    project.cargo(&["test", "--quiet"]);
    project.cargo(&["build", "--quiet"]);
    let github = played_github().await;
    answers_locally(&project, &github).await;
    answers_in_the_emulator(&project, &github);
    names_the_missing_feature(&project);
}

#[test]
#[ignore = "needs cargo-lambda; run tests/all"]
fn a_project_with_other_answers_compiles_without_warnings() {
    let answers = [
        ("secrets", "secrets-manager"),
        ("auth", "jwt"),
        ("protocols", "mcp"),
    ];
    let project = Project::generate("other_tools", &answers);
    let manifest = project.text("Cargo.toml");
    assert!(
        manifest.contains("features = [\"explorer\", \"jwt\", \"secrets-manager\"]"),
        "{manifest}"
    );
    assert!(!project.folder.join("events/find-issues.json").exists());
    project.cargo(&["fmt", "--check"]);
    project.cargo(&["clippy", "--quiet", "--all-targets", "--", "-D", "warnings"]);
}

/// The files of a project with their texts, by their paths. Empty folders are left out.
fn files_below(folder: &Path) -> BTreeMap<PathBuf, String> {
    let mut files = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(open) = folders.pop() {
        for entry in fs::read_dir(open).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let text = fs::read_to_string(&path).unwrap();
                files.insert(path.strip_prefix(folder).unwrap().to_owned(), text);
            }
        }
    }
    files
}

/// A release can offer the template as a file, whose URL cargo-lambda takes in the same way.
#[test]
#[ignore = "needs cargo-lambda; run tests/all"]
fn a_zipped_template_makes_the_same_project() {
    let project = Project::generate("zipped", &[]);
    let expected = files_below(&project.folder);
    assert!(expected.contains_key(Path::new(".github/workflows/ci.yml")));
    let parent = project.folder.parent().unwrap();
    let zip = "import sys, shutil; shutil.make_archive(sys.argv[1], 'zip', *sys.argv[2:])";
    let mut python = Command::new(installed("python"));
    python
        .args(["-c", zip])
        .arg(parent.join("function-template"));
    stdout_of(python.arg(repository("templates/function")));
    let archive = parent.join("function-template.zip");
    let project = Project::generate_from(&archive, "zipped", &[]);
    assert_eq!(files_below(&project.folder), expected);
}

fn of_type<'a>(resources: &'a BTreeMap<&str, Value>, kind: &str) -> Vec<&'a Value> {
    sam::of_type(resources, kind).into_values().collect()
}

/// The actions that the role allows, as JSON.
fn actions_of(resources: &BTreeMap<&str, Value>) -> Vec<String> {
    let [role] = of_type(resources, "AWS::IAM::Role")[..] else {
        panic!("{resources:?}");
    };
    assert_eq!(role.get("ManagedPolicyArns"), None);
    let statements = &role["Policies"][0]["PolicyDocument"]["Statement"];
    let statements = statements.as_array().unwrap().iter();
    statements.map(|it| it["Action"].to_string()).collect()
}

/// The function is in a VPC if there are subnets and security groups.
fn check_network(template: &Template) {
    let network = [
        ("SubnetIds", "subnet-01234567,subnet-89abcdef"),
        ("SecurityGroupIds", "sg-01234567"),
    ];
    assert!(template.accepts(&[]) && template.accepts(&network));
    assert!(!template.accepts(&network[..1]) && !template.accepts(&network[1..]));
    let resources = template.resources(&network);
    let function = of_type(&resources, "AWS::Lambda::Function")[0];
    let subnets = ["subnet-01234567", "subnet-89abcdef"];
    let expected = json!({"SubnetIds": subnets, "SecurityGroupIds": ["sg-01234567"]});
    assert_eq!(function["VpcConfig"], expected);
    let actions = actions_of(&resources);
    let count = actions.iter().filter(|it| it.contains("ec2:")).count();
    assert_eq!(count, 1, "{actions:?}");
}

/// The role allows what the function does, its URL is as open as the answer says, and the function
/// reads its secrets from where they are.
fn check_resources(project: &Project, secrets: &str, auth: &str) {
    let template = Template::transform(&project.folder.join("template.yaml"));
    check_network(&template);
    let resources = template.resources(&[]);
    let [function] = of_type(&resources, "AWS::Lambda::Function")[..] else {
        panic!("{resources:?}");
    };
    assert_eq!(function.get("VpcConfig"), None);
    assert_eq!(function.get("ReservedConcurrentExecutions"), None);
    let variables = &function["Environment"]["Variables"];
    assert_eq!(
        variables["TOOLS_AUTH"],
        if auth == "iam" { "none" } else { auth }
    );
    let from_manager = secrets == "secrets-manager";
    assert_eq!(variables.get("GITHUB_TOKEN").is_none(), from_manager);
    assert_eq!(variables.get("TOOLS_SECRETS").is_some(), from_manager);

    let url = of_type(&resources, "AWS::Lambda::Url")[0];
    let permissions = of_type(&resources, "AWS::Lambda::Permission");
    if auth == "iam" {
        assert_eq!(url["AuthType"], "AWS_IAM");
        assert!(permissions.is_empty());
    } else {
        assert_eq!(url["AuthType"], "NONE");
        // Lambda requires both.
        assert_eq!(permissions.len(), 2);
    }

    let is_set = |name| variables.get(name).is_some();
    assert_eq!(is_set("TOOLS_OIDC_ISSUERS"), auth == "oidc");

    let generated = of_type(&resources, "AWS::SecretsManager::Secret");
    let has_secret = ["api-key", "jwt"].contains(&auth);
    assert_eq!(generated.len(), usize::from(from_manager && has_secret));
    let mut expected = vec![r#"["logs:CreateLogStream","logs:PutLogEvents"]"#];
    if from_manager {
        expected.push(r#""secretsmanager:GetSecretValue""#);
        expected.push(r#""secretsmanager:BatchGetSecretValue""#);
    }
    assert_eq!(actions_of(&resources), expected);
}

#[test]
#[ignore = "needs cargo-lambda and aws-sam-cli; run tests/all"]
fn every_combination_has_a_valid_sam_template() {
    let mut templates = Vec::new();
    for secrets in ["environment", "secrets-manager"] {
        for auth in ["api-key", "jwt", "oidc", "iam"] {
            let name = format!("{secrets}-{auth}");
            let project = Project::generate(&name, &[("secrets", secrets), ("auth", auth)]);
            check_resources(&project, secrets, auth);
            let manifest = project.text("Cargo.toml");
            for feature in ["jwt", "oidc", "secrets-manager"] {
                let is_enabled = manifest.contains(&format!("\"{feature}\""));
                assert_eq!(is_enabled, [secrets, auth].contains(&feature), "{manifest}");
            }
            templates.push(project.folder.join("template.yaml"));
        }
    }
    let stdout = stdout_of(Command::new(installed("cfn-lint")).args(&templates));
    assert_eq!(stdout, "");
    let mut sam = Command::new(installed("sam").canonicalize().unwrap());
    sam.args(["validate", "--region", "us-east-1", "-t"])
        .arg(&templates[0]);
    sam.current_dir(templates[0].parent().unwrap());
    let stdout = stdout_of(sam.env("SAM_CLI_TELEMETRY", "0"));
    assert!(stdout.contains("is a valid SAM Template"), "{stdout}");
}
