//! Projects that cargo-lambda generates from `templates/function`, built with this working tree, and
//! the commands of the README, which generate one.

mod terminal;

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
    sync::LazyLock,
};

use axum::{Router, http::HeaderMap, routing::get};
use serde_json::{Value, json};
use test_support::{
    Served,
    documents::{ADDRESS, is_typed, pages},
    function, installed, isolated, repository,
    sam::{self, Template},
};

use terminal::Terminal;

/// The answer that names the clone in `parent_without`.
const CLONE: (&str, &str) = ("lambda_tools", "../lambda_tools");

/// A generated project.
struct Project {
    name: String,
    folder: PathBuf,
}

impl Project {
    /// Generates a project with the default answers, except for `answers`.
    fn generate(name: &str, answers: &[(&str, &str)]) -> Self {
        Self::generate_with(name, &[&[CLONE], answers].concat())
    }

    /// Generates a project with these answers alone.
    fn generate_with(name: &str, answers: &[(&str, &str)]) -> Self {
        let mut command = Command::new(installed("cargo-lambda").canonicalize().unwrap());
        command.args(["lambda", "new", name, "--no-interactive", "--template"]);
        command.arg(repository("templates/function"));
        for (variable, value) in answers {
            command.args(["--render-var", &format!("{variable}={value}")]);
        }
        stdout_of(command.current_dir(parent_without(name)));
        let project = Self::at(parent_without("").join(name));
        // The versions that are tested, which are also already downloaded.
        fs::copy(repository("Cargo.lock"), project.folder.join("Cargo.lock")).unwrap();
        project
    }

    fn at(folder: PathBuf) -> Self {
        let name = folder.file_name().unwrap().to_str().unwrap().to_owned();
        Self { name, folder }
    }

    fn text(&self, file: &str) -> String {
        fs::read_to_string(self.folder.join(file)).unwrap()
    }

    /// Returns a command in the project's folder. All projects share what they build, also with
    /// this workspace: most dependencies have the same features.
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

    /// Returns the program, which has been built.
    fn program(&self) -> Command {
        self.command(built_below().join("debug").join(&self.name))
    }
}

/// Returns the folder of all projects, without this one. It also has what looks like a clone of the
/// library.
fn parent_without(name: &str) -> PathBuf {
    let parent = repository("target/template");
    fs::create_dir_all(&parent).unwrap();
    let parent = parent.canonicalize().unwrap();
    let clone = parent.join("lambda_tools");
    let _ = symlink(repository(".").canonicalize().unwrap(), clone);
    if !name.is_empty() {
        let _ = fs::remove_dir_all(parent.join(name));
    }
    parent
}

fn built_below() -> PathBuf {
    repository("target").canonicalize().unwrap()
}

fn stdout_of(command: &mut Command) -> String {
    println!("{command:?}");
    test_support::stdout_of(&command.output().unwrap())
}

/// Starts a server that plays GitHub, for the token `a-token`.
async fn played_github() -> Served {
    let search = async |headers: HeaderMap| {
        assert_eq!(headers["authorization"], "Bearer a-token");
        let issue = json!({"id": 1, "title": "It panics", "html_url": "https://github.com/o/r/1"});
        json!({"total_count": 1, "items": [issue]}).to_string()
    };
    Served::start(Router::new().route("/search/issues", get(search))).await
}

/// Checks a setting whose feature is not compiled in.
fn names_the_missing_feature(project: &Project) {
    for auth in ["jwt", "oidc"] {
        let mut program = project.program();
        let output = program.env("TOOLS_AUTH", auth).env("PORT", "0").output();
        let output = output.unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success(), "{auth}");
        let line = format!("lambda_tools = {{ …, features = [\"{auth}\"] }}");
        assert!(stderr.contains(&line), "{stderr}");
    }
}

/// Types the commands of a project's README.
fn answers_as_its_readme_says(project: &Project, terminal: &mut Terminal) {
    let typed = terminal.type_page("README.md", &project.text("README.md"));
    let calls = ["curl ", "cargo lambda invoke "];
    let is_call = |command: &str| calls.iter().any(|call| command.starts_with(call));
    let answers = typed.iter().filter(|(command, _)| is_call(command));
    let answers = answers.map(|(_, answer)| answer.contains("It panics"));
    assert_eq!(answers.collect::<Vec<_>>(), [true, true], "{typed:?}");
}

/// cargo-lambda asks the questions of a template also if their answers were given.
#[test]
#[ignore = "needs cargo-lambda; run tests/all"]
fn nobody_is_asked_where_the_library_is() {
    let parent = parent_without("asked");
    let mut asked = Command::new(installed("python"));
    asked.arg("-c").arg(include_str!("answer.py"));
    asked.arg(installed("cargo-lambda").canonicalize().unwrap());
    asked.args(["lambda", "new", "asked", "--template"]);
    asked.arg(repository("templates/function").canonicalize().unwrap());
    asked.args(["--render-var", "lambda_tools=../lambda_tools"]);
    let shown = stdout_of(asked.current_dir(&parent));
    let is_asked = shown.contains("Which protocols does the function speak?");
    assert!(is_asked && !shown.contains("lambda_tools"), "{shown}");
}

/// Creates a project with these answers alone, and returns its dependency on the library as cargo reads
/// it.
fn dependency_from(name: &str, answers: &[(&str, &str)]) -> Value {
    let project = Project::generate_with(name, answers);
    let arguments = ["metadata", "--no-deps", "--format-version", "1"];
    let metadata = stdout_of(project.command("cargo").args(arguments));
    let metadata: Value = serde_json::from_str(&metadata).unwrap();
    let dependencies = metadata["packages"][0]["dependencies"].as_array().unwrap();
    let library = dependencies.iter().find(|it| it["name"] == "lambda_tools");
    library.unwrap().clone()
}

#[test]
#[ignore = "needs cargo-lambda; run tests/all"]
fn a_project_gets_the_library_from_a_path_as_a_version_or_from_git() {
    let path = dependency_from("from-path", &[CLONE]);
    let clone = parent_without("").join("lambda_tools");
    assert_eq!(path["path"], clone.to_str().unwrap());
    let git = "https://git.example/lambda_tools";
    for (name, answer, source, expected) in [
        ("from-version", Some("0.1.0"), "registry+", "^0.1.0"),
        ("from-default", None, "registry+", "^0.1"),
        ("from-git", Some(git), "git+https://git.example/", "*"),
    ] {
        let answers: Vec<_> = answer.map(|it| ("lambda_tools", it)).into_iter().collect();
        let library = dependency_from(name, &answers);
        let has_source = library["source"].as_str().unwrap().starts_with(source);
        assert!(has_source && library["req"] == expected, "{library}");
    }
}

/// Tests that take too long for every change: `.ci/long` runs them.
mod long {
    use super::*;

    mod deployment;
    mod guides;

    /// The README's last project has a README with commands, too.
    #[tokio::test(flavor = "multi_thread")]
    #[ignore = "needs cargo-lambda and curl; run .ci/long"]
    async fn the_commands_of_the_readmes_work() {
        let github = played_github().await;
        let parent = parent_without("my-tools");
        let mut terminal = Terminal::open(&parent.join("lambda_tools"), &github.url);
        let readme = fs::read_to_string(repository("README.md")).unwrap();
        terminal.type_page("README.md", &readme);
        let tools = terminal.type_line(&format!("curl {ADDRESS}/tools"));
        assert!(tools.contains("GitHub.FindIssues"), "{tools}");
        assert_eq!(terminal.folder(), parent.join("my-tools"));
        let project = Project::at(parent.join("my-tools"));
        let manifest = project.text("Cargo.toml");
        assert!(!manifest.contains("\"jwt\"") && manifest.contains("secrets-manager"));
        project.cargo(&["fmt", "--check"]);
        answers_as_its_readme_says(&project, &mut terminal);
        names_the_missing_feature(&project);
    }

    /// Of the pages that no other test types, in an empty folder, with the functions that are built.
    #[test]
    #[ignore = "needs cargo-lambda, curl, and what tests/build builds; run .ci/long"]
    fn the_commands_of_the_pages_work() {
        let folder = parent_without("pages").join("pages");
        let (toolbox, hello) = (function("toolbox"), function("hello"));
        let (toolbox, hello) = (toolbox.display(), hello.display());
        let cargo = format!(
            "#!/bin/sh\ncase \"$*\" in\n'run -p toolbox') exec '{toolbox}' ;;\n\
             run | 'run -p hello') exec '{hello}' ;;\nesac\nexit 9\n"
        );
        let mut typed = 0;
        for (path, text) in pages().iter().filter(|(path, _)| !is_typed(path)) {
            let _ = fs::remove_dir_all(&folder);
            fs::create_dir_all(&folder).unwrap();
            let mut terminal = Terminal::open(&folder, "");
            terminal.add_program("cargo", &cargo);
            // No request leaves the machine.
            terminal.set("GMAIL_URL", "http://127.0.0.1:9");
            terminal.set("TWILIO_URL", "http://127.0.0.1:9");
            typed += terminal.type_page(path, text).len();
        }
        assert!(typed > 15, "{typed}");
    }

    #[test]
    #[ignore = "needs cargo-lambda; run .ci/long"]
    fn a_project_with_other_answers_compiles_without_warnings() {
        let answers = [
            ("secrets", "secrets-manager"),
            ("auth", "jwt"),
            ("protocols", "mcp"),
        ];
        let project = Project::generate("other_tools", &answers);
        let manifest = project.text("Cargo.toml");
        let features = "features = [\"explorer\", \"jwt\", \"secrets-manager\"]";
        assert!(manifest.contains(features), "{manifest}");
        assert!(!project.folder.join("events/find-issues.json").exists());
        project.cargo(&["fmt", "--check"]);
        project.cargo(&["clippy", "--quiet", "--all-targets", "--", "-D", "warnings"]);
    }
}

fn of_type<'a>(resources: &'a BTreeMap<&str, Value>, kind: &str) -> Vec<&'a Value> {
    sam::of_type(resources, kind).into_values().collect()
}

/// Returns the actions that the role allows, as JSON.
fn actions_of(resources: &BTreeMap<&str, Value>) -> Vec<String> {
    let [role] = of_type(resources, "AWS::IAM::Role")[..] else {
        panic!("{resources:?}");
    };
    assert_eq!(role.get("ManagedPolicyArns"), None);
    let statements = &role["Policies"][0]["PolicyDocument"]["Statement"];
    let statements = statements.as_array().unwrap().iter();
    statements.map(|it| it["Action"].to_string()).collect()
}

/// The actions on a table.
const ITEMS: &str = r#"["dynamodb:GetItem","dynamodb:PutItem","dynamodb:DeleteItem"]"#;

/// Checks that tasks have a table, a queue and the permissions, and that the URL expects responses in
/// parts, where a parameter says so.
fn check_long_calls(template: &Template) {
    for (tasks, streaming) in [("no", "no"), ("no", "yes"), ("yes", "no"), ("yes", "yes")] {
        let resources = template.resources(&[("Tasks", tasks), ("Streaming", streaming)]);
        let has_tasks = tasks == "yes";
        for name in ["InvokesItself", "Invocations", "UndoneTasks", "Calls"] {
            assert_eq!(resources.contains_key(name), has_tasks, "{name}");
        }
        let function = of_type(&resources, "AWS::Lambda::Function")[0];
        let (timeout, table) = match tasks {
            "yes" => (900, json!({"Ref": "Calls"})),
            _ => (23, Value::Null),
        };
        let variables = &function["Environment"]["Variables"];
        assert_eq!(function["Timeout"], timeout);
        assert_eq!(variables["TOOLS_IDEMPOTENCY_TABLE"], table);
        let actions = actions_of(&resources);
        let count = |action: &str| actions.iter().filter(|it| *it == action).count();
        // A project whose users sign in has a table of grants, too.
        let grants = usize::from(resources.contains_key("Grants"));
        let expected = usize::from(has_tasks);
        let counts = [ITEMS, r#""sqs:SendMessage""#].map(count);
        assert_eq!(counts, [expected + grants, expected], "{actions:?}");
        let (streams, mode) = match streaming {
            "yes" => (json!("function-url"), "RESPONSE_STREAM"),
            _ => (Value::Null, "BUFFERED"),
        };
        assert_eq!(variables["TOOLS_STREAMING"], streams);
        let url = of_type(&resources, "AWS::Lambda::Url")[0];
        assert_eq!(url["InvokeMode"], mode);
        assert_eq!(variables["TOOLS_EVENTS"], "function-url,warm-up");
    }
    // Alarms cost extra.
    let on = ("Monitoring", "on");
    let email = ("AlarmEmail", "ops@example.com");
    for (parameters, count) in [
        (&[][..], 0),
        (&[("Tasks", "yes"), email], 0),
        (&[on], 3),
        (&[on, ("Tasks", "yes"), email], 4),
    ] {
        let resources = template.resources(parameters);
        let alarms = of_type(&resources, "AWS::CloudWatch::Alarm");
        assert_eq!(alarms.len(), count, "{parameters:?}");
        let notifies = parameters.starts_with(&[on]) && parameters.contains(&email);
        assert_eq!(resources.contains_key("Alarms"), notifies);
        let actions = notifies.then(|| json!([{"Ref": "Alarms"}]));
        let is_right = |it: &&Value| it.get("AlarmActions") == actions.as_ref();
        assert!(alarms.iter().all(is_right), "{alarms:#?}");
    }
    check_shared_parts(template);
}

/// Checks that alarms on the log and tasks are those of this repository's template, whose own tests
/// check them.
fn check_shared_parts(template: &Template) {
    static ROOT: LazyLock<Template> =
        LazyLock::new(|| Template::transform(&repository("template.yaml")));
    let of_project = template.resources(&[("Monitoring", "on"), ("Tasks", "yes")]);
    let of_toolbox = ROOT.resources(&[("Tasks", "yes")]);
    let same =
        "EverythingRefused LoggedErrors ErrorFilter RefusedFilter NotRefusedFilter UndoneTasks";
    let same = same.split(' ').map(|name| (name, name));
    let others = [
        ("InvokesItself", "ToolboxInvokesItself"),
        ("Invocations", "ToolboxTasks"),
    ];
    for (name, of_root) in same.chain(others) {
        let text_of = |resource: &Value| {
            let mut properties = resource["Properties"].clone();
            let fields = properties.as_object_mut().unwrap();
            fields.remove("AlarmDescription");
            let text = properties.to_string().replace("ToolboxLog", "Log");
            let text = text.replace("ToolboxRole", "Role");
            text.replace("Toolbox", "Function")
        };
        let expected = text_of(&of_toolbox[of_root]);
        assert_eq!(text_of(&of_project[name]), expected, "{name}");
    }
    let table = &of_project["Calls"]["Properties"];
    let expected = &of_toolbox["Records"]["Properties"];
    for field in "KeySchema AttributeDefinitions TimeToLiveSpecification".split(' ') {
        assert_eq!(table[field], expected[field], "{field}");
    }
}

/// Checks that the role allows what the function does, that its URL is as open as the answer says,
/// and that the function reads its secrets from where they are.
fn check_resources(project: &Project, secrets: &str, auth: &str) {
    let template = Template::transform(&project.folder.join("template.yaml"));
    check_long_calls(&template);
    let resources = template.resources(&[]);
    let [function] = of_type(&resources, "AWS::Lambda::Function")[..] else {
        panic!("{resources:?}");
    };
    let variables = &function["Environment"]["Variables"];
    let checks = if auth == "iam" { "none" } else { auth };
    assert_eq!(variables["TOOLS_AUTH"], checks);
    let (from_manager, signs_in) = (secrets == "secrets-manager", auth == "sign-in");
    for (name, is_set) in [
        ("GITHUB_TOKEN", !from_manager),
        ("TOOLS_SECRETS", from_manager),
        ("TOOLS_OIDC_ISSUERS", auth == "oidc"),
        ("TOOLS_OAUTH_TABLE", signs_in),
        ("TOOLS_SIGN_IN_CLIENT_SECRET", signs_in && !from_manager),
    ] {
        assert_eq!(variables.get(name).is_some(), is_set, "{name}");
    }
    let url = of_type(&resources, "AWS::Lambda::Url")[0];
    let permissions = of_type(&resources, "AWS::Lambda::Permission").len();
    // Lambda requires both permissions of an open URL.
    let expected = match auth {
        "iam" => ("AWS_IAM", 0),
        _ => ("NONE", 2),
    };
    assert_eq!((url["AuthType"].as_str().unwrap(), permissions), expected);
    let generated = of_type(&resources, "AWS::SecretsManager::Secret");
    let has_secret = ["api-key", "jwt", "sign-in"].contains(&auth);
    assert_eq!(generated.len(), usize::from(from_manager && has_secret));
    // Grants are retained, together with the key that encrypts them.
    for name in ["Grants", "OAuthKey"] {
        if let Some(resource) = resources.get(name) {
            assert_eq!(resource["DeletionPolicy"], "RetainExceptOnCreate", "{name}");
            assert_eq!(resource["UpdateReplacePolicy"], "Retain", "{name}");
        }
    }
    let mut expected = vec![r#"["logs:CreateLogStream","logs:PutLogEvents"]"#];
    if signs_in {
        expected.push(ITEMS);
    }
    if from_manager {
        expected.push(r#""secretsmanager:GetSecretValue""#);
        expected.push(r#""secretsmanager:BatchGetSecretValue""#);
    }
    assert_eq!(actions_of(&resources), expected);
}

#[test]
#[ignore = "needs cargo-lambda and aws-sam-cli; run tests/all"]
fn projects_have_valid_sam_templates() {
    let mut templates = Vec::new();
    // With oidc and iam, there is no secret of callers that AWS could store.
    for (secrets, auth) in [
        ("environment", "api-key"),
        ("environment", "jwt"),
        ("environment", "oidc"),
        ("environment", "sign-in"),
        ("environment", "iam"),
        ("secrets-manager", "api-key"),
        ("secrets-manager", "jwt"),
        ("secrets-manager", "sign-in"),
    ] {
        let name = format!("{secrets}-{auth}");
        let project = Project::generate(&name, &[("secrets", secrets), ("auth", auth)]);
        check_resources(&project, secrets, auth);
        let manifest = project.text("Cargo.toml");
        for feature in ["jwt", "oidc", "secrets-manager", "sign-in"] {
            let is_enabled = manifest.contains(&format!("\"{feature}\""));
            assert_eq!(is_enabled, [secrets, auth].contains(&feature), "{manifest}");
        }
        templates.push(project.folder.join("template.yaml"));
    }
    let stdout = stdout_of(Command::new(installed("cfn-lint")).args(templates));
    assert_eq!(stdout, "");
}
