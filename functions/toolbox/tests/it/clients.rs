//! The published Python client, which comes from PyPI.

use std::process::{Command, Output};

use lambda_tools::{ApiKeys, Auth, secrets::Secrets};
use test_support::Served;
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

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the Python client oxp; run tests/all"]
async fn the_published_python_client_works() {
    let open = serve(Auth::none(), Secrets::none()).await;
    let key = Secrets::fixed([("KEY", "right-0123456789")]);
    let closed = serve(ApiKeys::with_ids(["KEY"]), key).await;
    let python = installed("python");
    let script = repository("functions/toolbox/tests/oxp_client.py");
    let run = move || {
        Command::new(python)
            .arg(script)
            .args([&open.url, &closed.url])
            .output()
    };
    let output = tokio::task::spawn_blocking(run).await.unwrap().unwrap();
    let stdout = stdout_of(&output);
    assert!(stdout.ends_with("11 checks passed\n"), "{stdout}");
}
