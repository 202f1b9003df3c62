//! `lambda-tools zip`: what it packs runs on Lambda.

use std::{env, fs, path::Path, process::Command};

use serde_json::{Value, json};
use test_support::{
    function_url::FunctionUrl,
    installed, isolated,
    lambda::calling,
    programs::{Prism, Rie},
    repository,
    sam::{Template, of_type},
};

use super::{Ended, Folder};

/// Returns the template for this processor.
pub(super) fn template() -> String {
    include_str!("../../src/zip/template.yaml").replace("x86_64", architecture())
}

fn architecture() -> &'static str {
    match env::consts::ARCH {
        "aarch64" => "arm64",
        other => other,
    }
}

/// Packs the tools into the folder `made`.
pub(super) fn pack(folder: &Folder) -> Ended {
    let words = format!("zip tools.json -o made --architecture {}", architecture());
    folder.types(&words).succeeds()
}

#[test]
fn a_folder_has_what_is_deployed() {
    let folder = Folder::new("zip");
    folder.run("pets.yaml --all -o tools.json").succeeds();
    // An owner may change the file.
    let tools = folder
        .read("tools.json")
        .replace("Returns a pet.", "Returns a cat.");
    folder.write("tools.json", &tools);
    let printed = pack(&folder).stdout;
    for line in [
        "  aws secretsmanager create-secret --name made/PETS_KEY --secret-string VALUE",
        "  sam deploy --template-file made/template.yaml --stack-name made --resolve-s3 --capabilities CAPABILITY_IAM",
        "--zip-file fileb://made/function.zip ",
    ] {
        assert!(printed.contains(line), "{printed}");
    }
    assert_eq!(folder.read("made/tools.json"), tools);
    assert_eq!(folder.read("made/template.yaml"), template());
    // So may they change the template.
    folder.write("made/template.yaml", "mine");
    pack(&folder);
    assert_eq!(folder.read("made/template.yaml"), "mine");
}

#[test]
fn what_lambda_would_not_run_is_not_packed() {
    let folder = Folder::new("unpacked");
    folder.run("pets.yaml --all -o tools.json").succeeds();
    let other = if architecture() == "arm64" {
        "x86_64"
    } else {
        "arm64"
    };
    let ended = folder.types(&format!("zip tools.json -o made --architecture {other}"));
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let command = ended.stderr.lines().last().unwrap();
    let packed = folder.tools("tools.json").to_json();
    for (text, expected) in [
        ("{}".to_owned(), "the file of tools is not valid: "),
        (
            packed.replace("\"format\": 1", "\"format\": 2"),
            "has the format 2, not 1",
        ),
        (packed.replace("https://", "http://"), "does not use TLS"),
        (
            packed.replace("Pets.GetPet@", "Pets GetPet@"),
            "Pets GetPet",
        ),
    ] {
        folder.write("edited.json", &text);
        let words = format!("zip edited.json -o made --architecture {}", architecture());
        folder.types(&words).fails(expected);
    }
    assert!(!folder.files().contains(&"made".to_owned()));
    folder
        .types(command.trim().strip_prefix("lambda-tools ").unwrap())
        .succeeds();
}

#[tokio::test(flavor = "multi_thread")]
async fn on_lambda_the_program_serves_the_tools_beside_it() {
    let folder = Folder::new("bootstrap");
    folder.run("pets.yaml --all -o tools.json").succeeds();
    pack(&folder);
    let mut program = isolated(Command::new(folder.0.join("made/bootstrap")));
    let environment = [("TOOLS_AUTH", "none"), ("PETS_KEY", "a-key-of-pets")];
    let function = FunctionUrl::start(&mut program, &environment).await;
    let tools = reqwest::get(format!("{}/tools", function.url))
        .await
        .unwrap();
    let tools = tools.text().await.unwrap();
    assert!(tools.contains("Pets.GetPet"), "{tools}");
}

/// Figma's tools, in a function that AWS's emulator runs; Prism plays Figma.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs AWS SAM and Prism; run tests/all"]
async fn the_zip_calls_the_api_as_its_document_says() {
    let folder = Folder::new("figma");
    folder.write("tools.json", include_str!("../figma/tools.json"));
    pack(&folder);
    let mut python = Command::new(installed("python").canonicalize().unwrap());
    let extract = "import shutil, zipfile; zip = zipfile.ZipFile('made/function.zip'); zip.extractall('deployed'); \
        assert zip.testzip() is None; print([(it.filename, oct(it.external_attr >> 16)) for it in zip.infolist()])";
    let output = python.args(["-c", extract]).current_dir(&folder.0).output();
    let listed = String::from_utf8(output.unwrap().stdout).unwrap();
    let expected = "[('bootstrap', '0o100755'), ('tools.json', '0o100644')]\n";
    assert_eq!(listed, expected);
    // Lambda sets the permissions, and Python does not.
    let program = folder.0.join("deployed/bootstrap");
    fs::set_permissions(
        &program,
        fs::metadata(folder.0.join("made/bootstrap"))
            .unwrap()
            .permissions(),
    )
    .unwrap();
    let body = figma_posts_a_comment(&program).await;
    assert_eq!(body["success"], true, "{body}");
    assert!(body["value"].is_object(), "{body}");
}

async fn figma_posts_a_comment(program: &Path) -> Value {
    let prism = Prism::start("figma").await;
    let settings = [("API_URL", &*prism.url), ("FIGMA_TOKEN", "figd_token")];
    let function = Rie::start(program, &settings).await;
    let input = json!({"file_key": "abc", "message": "Looks good"});
    let call = json!({"tool_id": "Figma.PostComment", "input": input});
    let answer = function.invoke(&calling(&call, &[])).await;
    serde_json::from_str(answer["body"].as_str().unwrap()).unwrap()
}

/// Callers send a key, or sign in; only then, and for tools that act for users, there is a table.
#[test]
#[ignore = "needs aws-sam-translator; run tests/all"]
fn the_template_has_what_its_parameters_need() {
    let template = Template::transform(&repository("crates/cli/src/zip/template.yaml"));
    let items = r#"["dynamodb:GetItem","dynamodb:PutItem","dynamodb:DeleteItem"]"#;
    for (parameters, auth, secret) in [
        (&[][..], "api-key", "ApiKey"),
        (&[("SignInProvider", "github")], "sign-in", "OAuthKey"),
        (&[("OAuthClientId", "tools")], "api-key", "ApiKey"),
    ] {
        let resources = template.resources(parameters);
        let has_table = !parameters.is_empty();
        let function = &resources["Function"]["Properties"];
        let variables = &function["Environment"]["Variables"];
        assert_eq!(variables["TOOLS_AUTH"], auth);
        assert_eq!(variables.get("TOOLS_OAUTH_TABLE").is_some(), has_table);
        assert_eq!(
            variables.get("TOOLS_SIGN_IN_PROVIDER").is_some(),
            auth == "sign-in"
        );
        assert!(resources.contains_key(secret), "{parameters:?}");
        let tables = of_type(&resources, "AWS::DynamoDB::Table");
        assert_eq!(tables.len(), usize::from(has_table), "{parameters:?}");
        for name in ["Grants", "OAuthKey"]
            .iter()
            .filter(|it| resources.contains_key(**it))
        {
            assert_eq!(resources[name]["DeletionPolicy"], "RetainExceptOnCreate");
            assert_eq!(resources[name]["UpdateReplacePolicy"], "Retain");
        }
        let role = &resources["Role"]["Properties"]["Policies"][0]["PolicyDocument"]["Statement"];
        let actions = role.as_array().unwrap().iter();
        let actions: Vec<_> = actions.map(|it| it["Action"].to_string()).collect();
        let mut expected = vec![
            r#"["logs:CreateLogStream","logs:PutLogEvents"]"#,
            r#""secretsmanager:GetSecretValue""#,
            r#""secretsmanager:BatchGetSecretValue""#,
        ];
        expected.extend(has_table.then_some(items));
        assert_eq!(actions, expected);
    }
}
