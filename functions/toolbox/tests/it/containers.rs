//! The function in a container, under the contracts of the platforms that run one.
//!
//! Each contract is a program that runs in a network of its own, where port 8000 is free and nobody
//! else hears the server. There it starts the last stage of the `Dockerfile`: the binary in a root
//! file system that has nothing else, with the image's variables and user, as process 1. With
//! `TEST_CONTAINER_IMAGE`, podman runs an image instead (`tests/image`).

mod contracts;
mod image;

use std::process::Command;

use test_support::{isolated, program};

use image::{RootFs, Stage, is_built, user_namespace};

/// Enables the loopback interface, and becomes the program in its arguments.
const IN_A_NETWORK: &str = "
import fcntl, os, socket, struct, sys
SIOCSIFFLAGS, IFF_UP = 0x8914, 1
fcntl.ioctl(socket.socket(), SIOCSIFFLAGS, struct.pack('16sh14x', b'lo', IFF_UP))
os.execvp(sys.argv[1], sys.argv[1:])
";

/// Runs a program of `contracts` in a network of its own.
fn check(contract: &str) {
    let mut command = isolated(Command::new("unshare"));
    let root = (!is_built()).then(|| RootFs::unpack(contract));
    if let Some(root) = &root {
        command
            .args(user_namespace("root"))
            .env("CONTAINER_ROOT", &root.0);
    }
    let contract = program(&format!(
        "containers::contracts::{contract}::program_of_tests"
    ));
    command.args(["--net", "python3", "-c", IN_A_NETWORK]);
    command
        .arg(contract.get_program())
        .args(contract.get_args());
    let output = command.env("IS_PROGRAM", "1").output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(
        output.status.success(),
        "root, or everyone, must be able to create user namespaces: {}{}",
        text(&output.stdout),
        text(&output.stderr)
    );
}

#[test]
#[ignore = "needs the deployable function; run tests/all"]
fn without_credentials_no_server_starts_that_others_can_reach() {
    check("undecided");
}

#[test]
#[ignore = "needs the deployable function; run tests/all"]
fn the_server_writes_nothing_and_logs_json() {
    check("read_only");
}

#[test]
#[ignore = "needs the deployable function and the Python client mcp; run tests/all"]
fn the_contract_of_agentcore_runtime_holds() {
    check("agentcore_runtime");
}

#[test]
#[ignore = "needs the deployable function; run tests/all"]
fn the_contract_of_cloud_run_holds() {
    check("cloud_run");
}

#[test]
#[ignore = "needs the deployable function; run tests/all"]
fn the_contract_of_kubernetes_holds() {
    check("shutdown::kubernetes");
}

#[test]
#[ignore = "needs the deployable function; run tests/all"]
fn a_call_that_outlasts_the_limit_does_not_delay_the_end() {
    check("shutdown::limit");
}

#[test]
#[ignore = "needs the deployable function; run tests/all"]
fn generated_projects_have_the_same_image() {
    let own = Stage::read("Dockerfile").without_licenses();
    for template in ["function", "openapi"] {
        assert_eq!(
            Stage::read(&format!("templates/{template}/Dockerfile")),
            own
        );
    }
}
