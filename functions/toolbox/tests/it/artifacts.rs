//! The binaries and zips that are deployed.

use std::{fs, path::Path, process::Command, time::Duration};

use serde_json::Value;
use test_support::{
    aws::Emulator,
    installed, isolated,
    lambda::{event, invoke_on},
    repository,
};

use crate::template::stdout_of;

/// The newest version of glibc that a program requires.
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
async fn the_deployed_binary_completes_a_call() {
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
        // The glibc version of provided.al2023.
        assert!(newest_glibc(&program) <= (2, 34), "{name}");
        let events = [(request, Some(Duration::from_secs(10)))];
        let (reports, _) = invoke_on(&mut isolated(Command::new(&bootstrap)), &events, &[]).await;
        assert_eq!(reports[0].1["statusCode"], 200, "{:?}", reports[0]);

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
    let python = python.args(["-c", script]);
    let stdout = stdout_of(python.args([zip, bootstrap, &licenses]));
    let expected = "['THIRD-PARTY-LICENSES.txt', 'bootstrap'] 0o100755";
    assert_eq!(stdout.trim(), expected, "{name}");
}

/// The arguments of `cargo lambda deploy` in the pages.
fn deploy_arguments() -> Vec<String> {
    let pages = ["README.md", "docs/lambda.md"].map(|page| {
        let text = fs::read_to_string(repository(page)).unwrap();
        let mut lines = text.lines();
        let line = lines.find_map(|line| line.strip_prefix("cargo lambda deploy "));
        line.unwrap().to_owned()
    });
    assert_eq!(pages[0], pages[1]);
    pages[0].split_whitespace().map(str::to_owned).collect()
}

/// Runs the pages' command against an emulator's APIs.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs moto, cargo-lambda and what tests/all builds"]
async fn cargo_lambda_deploys_the_toolbox() {
    let emulator = Emulator::with_policies().await;
    // A copy, because the command writes its zip next to the binary, and other tests read that one.
    let folder = std::env::temp_dir().join(format!("deployed-{}", std::process::id()));
    let bootstrap = folder.join("toolbox/bootstrap");
    fs::create_dir_all(bootstrap.parent().unwrap()).unwrap();
    fs::copy(repository("target/lambda/toolbox/bootstrap"), &bootstrap).unwrap();
    let mut cargo_lambda = Command::new(installed("cargo-lambda"));
    cargo_lambda
        .args(["lambda", "deploy"])
        .args(deploy_arguments())
        .args(["--endpoint-url", emulator.url(), "--lambda-dir"])
        .arg(&folder)
        .current_dir(repository("functions/toolbox"))
        .env("AWS_REGION", "us-east-1")
        .env("AWS_ACCESS_KEY_ID", "AKIA0123456789")
        .env("AWS_SECRET_ACCESS_KEY", "aws-0123456789");
    stdout_of(&mut cargo_lambda);
    let url = format!("{}/2015-03-31/functions/toolbox", emulator.url());
    let credential =
        "AWS4-HMAC-SHA256 Credential=AKIA0123456789/20260101/us-east-1/lambda/aws4_request";
    let request = reqwest::Client::new()
        .get(url)
        .header("authorization", credential);
    let deployed: Value = request.send().await.unwrap().json().await.unwrap();
    let configuration = &deployed["Configuration"];
    assert_eq!(configuration["Timeout"], 23);
    assert_eq!(configuration["MemorySize"], 256);
    assert_eq!(configuration["Runtime"], "provided.al2023");
    let zip = folder.join("toolbox/bootstrap.zip");
    assert_eq!(configuration["CodeSize"], fs::metadata(&zip).unwrap().len());
    check_zip("toolbox", &zip, &bootstrap);
    let variables = &configuration["Environment"]["Variables"];
    assert_eq!(variables["TOOLS_AUTH"], "api-key");
    assert_eq!(variables["TOOLS_SECRETS_PREFIX"], "tools/");
    fs::remove_dir_all(&folder).unwrap();
}
