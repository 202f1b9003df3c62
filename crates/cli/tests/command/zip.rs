//! `lambda-tools zip`: what it packs runs on Lambda.

use std::{env, fs, path::PathBuf, process::Command};

use serde_json::{Value, json};
use test_support::{
    aws::{CREDENTIALS, emulated},
    installed,
    openid::OpenId,
    programs::Rie,
    repository,
    sam::{Template, of_type},
};

use super::{Ended, Folder, serve::fastapi};

/// Returns the template for this processor.
pub(super) fn template() -> String {
    include_str!("../../src/zip/template.yaml").replace("x86_64", architecture())
}

pub(super) fn architecture() -> &'static str {
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
    let mut others = ["arm64", "x86_64"].into_iter();
    let other = others.find(|it| *it != architecture()).unwrap();
    let ended = folder.types(&format!("zip tools.json -o made --architecture {other}"));
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let command = ended.stderr.lines().last().unwrap();
    let packed = folder.tools("tools.json").to_json();
    for (from, to, expected) in [
        (&*packed, "{}", "the file of tools is not valid: "),
        ("\"format\": 1", "\"format\": 2", "has the format 2, not 1"),
        ("https://", "http://", "does not use TLS"),
        ("Pets.GetPet@", "Pets GetPet@", "Pets GetPet"),
    ] {
        folder.write("edited.json", &packed.replace(from, to));
        let words = format!("zip edited.json -o made --architecture {}", architecture());
        folder.types(&words).fails(expected);
    }
    assert!(!folder.files().contains(&"made".to_owned()));
    folder
        .types(command.trim().strip_prefix("lambda-tools ").unwrap())
        .succeeds();
}

/// Unpacks the zip that was made; returns the program in it.
fn deployed(folder: &Folder) -> PathBuf {
    let mut python = Command::new(installed("python").canonicalize().unwrap());
    let extract = "import shutil, zipfile; zip = zipfile.ZipFile('made/function.zip'); zip.extractall('deployed'); \
        assert zip.testzip() is None; print([(it.filename, oct(it.external_attr >> 16)) for it in zip.infolist()])";
    let output = python.args(["-c", extract]).current_dir(&folder.0).output();
    let listed = String::from_utf8(output.unwrap().stdout).unwrap();
    let expected = "[('bootstrap', '0o100755'), ('tools.json', '0o100644')]\n";
    assert_eq!(listed, expected);
    // Lambda sets the permissions, and Python does not.
    let program = folder.0.join("deployed/bootstrap");
    let packed = fs::metadata(folder.0.join("made/bootstrap")).unwrap();
    fs::set_permissions(&program, packed.permissions()).unwrap();
    program
}

/// With the variables, secrets and tables of the template, in AWS's emulator. The secret of the tool
/// is in Secrets Manager, too: the API accepts no other one.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs AWS SAM, moto, MCP's client for Python and npm's oidc-provider; run tests/all"]
async fn a_deployment_accepts_its_key_or_users_who_sign_in() {
    const KEY: &str = "a-key-of-this-stack-0123456789abcdef";
    let (api, provider) = (fastapi().await, OpenId::start());
    let (_emulator, aws) = emulated().await;
    let folder = Folder::new("deployed");
    let options = "/openapi.json --all --allow-private -o tools.json";
    folder.run(&format!("{}{options}", api.url)).succeeds();
    pack(&folder);
    let program = deployed(&folder);
    let in_stack = folder
        .read("made/template.yaml")
        .replace("${AWS::StackName}", "made");
    folder.write("made/template.yaml", &in_stack);
    let template = Template::transform(&folder.0.join("made/template.yaml"));
    aws.put_secret("made/ORDERS_HTTPBEARER", "token-of-orders")
        .await;
    aws.put_secret("made/TOOLS_SIGN_IN_CLIENT_SECRET", "toolbox-secret")
        .await;
    let parameters = [
        ("SignInProvider", "openid"),
        ("SignInIssuer", &*provider.url),
        ("SignInClientId", "toolbox"),
        ("SignInAllow", "anyone"),
    ];
    for (parameters, signs_in) in [(&[][..], false), (&parameters, true)] {
        let resources = template.resources(parameters);
        for secret in of_type(&resources, "AWS::SecretsManager::Secret").values() {
            aws.put_secret(secret["Name"].as_str().unwrap(), KEY).await;
        }
        for table in of_type(&resources, "AWS::DynamoDB::Table").keys() {
            aws.create_table(table).await;
        }
        let variables = &resources["Function"]["Properties"]["Environment"]["Variables"];
        let variables = variables.as_object().unwrap().iter();
        // The only one that is no text refers to the table.
        let variables = variables.map(|(name, it)| (&**name, it.as_str().unwrap_or("Grants")));
        let endpoint = aws.url();
        let variables = variables
            .chain(CREDENTIALS)
            .chain([("AWS_ENDPOINT_URL", &*endpoint)]);
        let function = Rie::behind_url(&program, &variables.collect::<Vec<_>>()).await;
        let url = &function.url;
        let metadata = format!("resource_metadata=\"{url}/.well-known/oauth-protected-resource");
        for wrong in [None, Some(&KEY[1..])] {
            let (status, challenge, _) = read_order(url, wrong).await;
            assert!(
                status == 401 && challenge.starts_with("Bearer"),
                "{challenge}"
            );
            assert_eq!(challenge.contains(&metadata), signs_in, "{challenge}");
        }
        let answer = if signs_in {
            let callback = format!("{url}/authorization/openid/callback");
            provider.allow_redirect(&callback).await;
            sign_in_and_read_order(url)
        } else {
            read_order(url, Some(KEY)).await.2["value"].take()
        };
        assert_eq!(answer, json!({"item": "tea"}));
    }
}

/// Calls the tool, perhaps with a key; returns the status, the challenge and the body.
async fn read_order(url: &str, key: Option<&str>) -> (u16, String, Value) {
    let call = json!({"tool_id": "Orders.ReadOrder", "input": {"order_id": 7}});
    let request = reqwest::Client::new().post(format!("{url}/tools/call"));
    let request = key
        .into_iter()
        .fold(request, reqwest::RequestBuilder::bearer_auth);
    let sent = request.json(&call).send().await.unwrap();
    let status = sent.status().as_u16();
    // The name that function URLs give it.
    let challenge = sent.headers().get("x-amzn-remapped-www-authenticate");
    let challenge = challenge.map_or("", |it| it.to_str().unwrap()).to_owned();
    (status, challenge, sent.json().await.unwrap())
}

/// Lets a published client, which knows nothing but the URL, sign its user in and call the tool.
fn sign_in_and_read_order(url: &str) -> Value {
    let mut client = Command::new("timeout");
    client.arg("60").arg(installed("python"));
    client.arg(repository("functions/toolbox/tests/mcp_oauth.py"));
    client.args([&format!("{url}/mcp"), "alice", "--tool", "Orders_ReadOrder"]);
    client.args(["--arguments", r#"{"order_id": 7}"#]);
    let output = tokio::task::block_in_place(|| client.output()).unwrap();
    let mut seen: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
    seen["call"]["value"]["result"].take()
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
