//! The binaries and zips that are deployed.

use std::{collections::BTreeMap, fs, path::Path, process::Command};

use serde_json::{Value, json};
use test_support::{
    aws::{CREDENTIALS, Emulator},
    documents::blocks,
    installed, isolated,
    lambda::calling,
    marks::Scratch,
    programs::Rie,
    repository,
};

use crate::clients::stdout_of;

/// Returns the newest version of glibc that a program requires.
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
#[ignore = "needs what tests/build builds; run .ci/long"]
async fn the_deployed_binary_completes_a_call() {
    let add = json!({"tool_id": "Calculator.Add", "input": {"a": 10, "b": 5}});
    let greet = json!({"tool_id": "Hello.Greet", "input": {"name": "Ada"}});
    for (name, resource, call) in [("toolbox", "Toolbox", add), ("hello", "Hello", greet)] {
        let bootstrap = repository(&format!("target/sam/{resource}/bootstrap"));
        let program = fs::read(&bootstrap).expect("tests/build builds it");
        // ELF, 64 bits, for x86_64.
        assert_eq!(&program[..5], b"\x7fELF\x02");
        assert_eq!(program[18], 62);
        // The glibc version of provided.al2023.
        assert!(newest_glibc(&program) <= (2, 34), "{name}");
        let function = Rie::start(&bootstrap, &[]).await;
        let answer = function.invoke(&calling(&call, &[])).await;
        assert_eq!(answer["statusCode"], 200, "{answer}");
        let zip = repository(&format!("target/lambda/{name}/bootstrap.zip"));
        check_zip(name, &zip, &bootstrap);
    }
}

/// Checks that a zip contains the binary, and the licenses of what is linked into it.
fn check_zip(name: &str, zip: &Path, bootstrap: &Path) {
    let script = "import sys, zipfile; archive = zipfile.ZipFile(sys.argv[1]); \
                  entries = {entry.filename: entry for entry in archive.infolist()}; \
                  print(sorted(entries), oct(entries['bootstrap'].external_attr >> 16)); \
                  assert archive.read('bootstrap') == open(sys.argv[2], 'rb').read(); \
                  assert archive.read('THIRD-PARTY-LICENSES.txt') == open(sys.argv[3], 'rb').read()";
    let licenses = repository(&format!("functions/{name}/THIRD-PARTY-LICENSES.txt"));
    let mut python = Command::new(installed("python"));
    python
        .args(["-c", script])
        .args([zip, bootstrap, &licenses]);
    let stdout = stdout_of(&python.output().unwrap());
    let expected = "['THIRD-PARTY-LICENSES.txt', 'bootstrap'] 0o100755";
    assert_eq!(stdout.trim(), expected, "{name}");
}

/// Creates a folder that cargo takes as its target folder, with a copy of a function's binary: the
/// commands write their zip next to it, and other tests read that one.
fn target_with(name: &str) -> Scratch {
    let target = Scratch::new(&format!("deployed-{name}"));
    let folder = target.0.join("lambda").join(name);
    fs::create_dir_all(&folder).unwrap();
    let bootstrap = repository(&format!("target/lambda/{name}/bootstrap"));
    fs::copy(bootstrap, folder.join("bootstrap")).unwrap();
    target
}

/// Runs the commands of the page that deploy a function with cargo-lambda; returns what they print,
/// and then the variables `URL` and `KEY`. `tests/build` installs and builds; the AWS CLI is not
/// installed, and the command that calls the function comes later.
fn deploy(name: &str, target: &Path, emulator: &Emulator) -> String {
    let left_out = ["python3 ", "cargo lambda build ", "aws ", "curl "];
    let page = "docs/lambda.md";
    let text = fs::read_to_string(repository(page)).unwrap();
    let mut blocks = blocks(page, &text).into_iter();
    let block = blocks.find(|it| it.text.contains(&format!("cargo lambda deploy {name} ")));
    let block = block.unwrap();
    let mut lines: Vec<_> = block.text.lines().collect();
    lines.retain(|line| !left_out.iter().any(|it| line.starts_with(it)));
    lines.push("echo \"$URL $KEY\"");
    let programs = installed("cargo-lambda").canonicalize().unwrap();
    let programs = programs.parent().unwrap().display();
    let path = std::env::var("PATH").unwrap();
    let mut shell = isolated(Command::new("sh"));
    shell
        .args(["-ec", &lines.join("\n")])
        .current_dir(repository("."))
        .env("PATH", format!("{programs}:{path}"))
        .env("CARGO_TARGET_DIR", target)
        .env("AWS_ENDPOINT_URL", emulator.url())
        .envs(CREDENTIALS);
    stdout_of(&shell.output().unwrap())
}

/// Checks a deployed function; returns its variables.
async fn deployed(name: &str, target: &Path, emulator: &Emulator) -> BTreeMap<String, String> {
    let url = format!("{}/2015-03-31/functions/{name}", emulator.url());
    let credential = "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/lambda/aws4_request";
    let request = reqwest::Client::new()
        .get(url)
        .header("authorization", credential);
    let mut deployed: Value = request.send().await.unwrap().json().await.unwrap();
    let configuration = &mut deployed["Configuration"];
    assert_eq!(configuration["Timeout"], 23);
    assert_eq!(configuration["MemorySize"], 256);
    assert_eq!(configuration["Runtime"], "provided.al2023");
    let folder = target.join("lambda").join(name);
    let zip = folder.join("bootstrap.zip");
    check_zip(name, &zip, &folder.join("bootstrap"));
    serde_json::from_value(configuration["Environment"]["Variables"].take()).unwrap()
}

#[tokio::test]
#[ignore = "needs moto, cargo-lambda, and what tests/build builds; run .ci/long"]
async fn the_commands_of_the_page_deploy_functions() {
    let emulator = Emulator::with_policies().await;
    let target = target_with("toolbox");
    deploy("toolbox", &target.0, &emulator);
    let variables = deployed("toolbox", &target.0, &emulator).await;
    assert_eq!(variables["TOOLS_AUTH"], "api-key");
    assert_eq!(variables["TOOLS_SECRETS_PREFIX"], "toolbox/");

    let target = target_with("hello");
    let printed = deploy("hello", &target.0, &emulator);
    let (url, key) = printed.trim().split_once(' ').unwrap();
    assert!(url.starts_with("https://") && !url.ends_with('/'), "{url}");
    assert_eq!(
        deployed("hello", &target.0, &emulator).await["TOOLS_API_KEY"],
        key
    );
}
