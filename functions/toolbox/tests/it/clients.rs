//! Programs that call the function, and the published Python client, which comes from PyPI.

use std::{
    ffi::OsStr,
    process::{Command, Output},
};

use lambda_tools::{ApiKeys, Auth, secrets::Secrets};
use serde_json::Value;
use test_support::{Served, node};
use toolbox::Endpoints;

use crate::support::{installed, repository, server};

/// Serves the toolbox from this process.
async fn serve(auth: impl Into<Auth>, secrets: Secrets) -> Served {
    let server = server(toolbox::tools(Endpoints::default()));
    let server = server.auth(auth).secrets(secrets);
    Served::start(server.into_router().unwrap()).await
}

/// Returns the standard output of a program. Panics with all output if the program failed.
pub(crate) fn stdout_of(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert!(
        output.status.success(),
        "{}\n{stdout}\n{stderr}",
        output.status
    );
    stdout
}

/// Returns the JSON that a program prints.
pub(crate) fn json_of(command: &mut Command) -> Value {
    let output = tokio::task::block_in_place(|| command.output());
    let stdout = stdout_of(&output.unwrap());
    serde_json::from_str(&stdout).unwrap_or_else(|error| panic!("{error}: {stdout}"))
}

/// Returns a program that is stopped if it does not end by itself.
pub(crate) fn limited(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("timeout");
    command.args(["--kill-after=5", "60"]).arg(program);
    command
}

/// Returns a script in Python, limited in the same way.
pub(crate) fn python(script: &str) -> Command {
    let mut command = limited(installed("python"));
    command.arg(repository(script));
    command
}

/// Returns a script for Node beside the packages of npm, limited in the same way.
pub(crate) fn node_script(name: &str) -> Command {
    let mut command = limited(node());
    command.arg(repository("target/conformance").join(name));
    command
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the Python client oxp; run tests/all"]
async fn the_published_python_client_works() {
    let open = serve(Auth::none(), Secrets::none()).await;
    let key = Secrets::fixed([("KEY", "right-0123456789")]);
    let closed = serve(ApiKeys::with_ids(["KEY"]), key).await;
    let mut client = python("functions/toolbox/tests/oxp_client.py");
    client.args([&open.url, &closed.url]);
    let stdout = stdout_of(&tokio::task::block_in_place(|| client.output()).unwrap());
    assert!(stdout.ends_with("11 checks passed\n"), "{stdout}");
}
