//! Documents of attackers, and files of tools that they have edited, for `serve` and `zip`.

use std::{fs, fs::File, process::Command, thread, time::Duration};

use test_support::{Running, aws::CREDENTIALS, isolated, lambda::LAMBDA};

use super::{Ended, Folder, PETS, is_harmless, zip};

/// Starts `serve`; returns what it has printed until a line has the text, or it has ended.
pub(super) fn printed_until(text: &str, folder: &Folder, file: &str) -> String {
    let errors = File::create(folder.0.join("errors")).unwrap();
    let mut command = folder.command(&["serve", file]);
    let mut running = Running::start(command.envs(SETTINGS).stderr(errors));
    let mut lines: Vec<String> = Vec::new();
    for _ in 0..1_500 {
        lines.extend(running.lines());
        if running.has_ended_within(0) || lines.iter().any(|it| it.contains(text)) {
            break;
        }
        thread::sleep(Duration::from_millis(20));
    }
    lines.extend(running.end());
    lines.push(folder.read("errors"));
    lines.join("\n")
}

/// The settings of a server whose callers send a key and whose users grant it tokens.
const SETTINGS: [(&str, &str); 6] = [
    ("TOOLS_AUTH", "api-key"),
    ("TOOLS_API_KEY", "a-key-of-callers-0123456789abcdef"),
    ("TOOLS_OAUTH_KEY", "a-key-of-this-server-0123456789abcdef"),
    ("TOOLS_OAUTH_TABLE", "grants"),
    ("OAUTH_CLIENT_ID", "tools"),
    ("OAUTH_CLIENT_SECRET", "tools-secret"),
];

/// Returns why `edited` is not packed, or why what is packed does not start on Lambda.
fn packed(folder: &Folder) -> String {
    _ = fs::remove_dir_all(folder.0.join("made"));
    let words = format!("zip edited -o made --architecture {}", zip::architecture());
    let zipped = folder.types(&words);
    if zipped.code == Some(1) {
        assert!(!folder.files().contains(&"made".to_owned()));
        return zipped.stderr;
    }
    // Nothing listens there.
    let mut function = isolated(Command::new(folder.0.join("made/bootstrap")));
    function.env("AWS_LAMBDA_RUNTIME_API", "127.0.0.1:9");
    function.envs(SETTINGS).envs(CREDENTIALS).envs(LAMBDA);
    let started: Ended = function.output().unwrap().into();
    assert_eq!(started.code, Some(1), "{started:?}");
    started.stdout + &started.stderr
}

/// A document with schemes of two kinds, and the file of its tools, each with one text replaced. A
/// server that leaves operations out starts.
#[test]
fn neither_addresses_nor_secrets_of_the_server_are_chosen() {
    let folder = Folder::new("chosen");
    let flows = "{authorizationCode: {authorizationUrl: https://login.example/a, tokenUrl: https://login.example/t}}";
    let schemes = format!("Schemes: {{login: {{type: oauth2, flows: {flows}}}, ApiKey:");
    let mine = "  /mine:\n    get: {operationId: getMine, summary: S., responses: {}, security: [{login: []}]}\n";
    let document = PETS.replace("Schemes: {key:", &schemes) + mine;
    folder.write("api.yaml", &document.replace("key: []", "ApiKey: []"));
    folder.run("api.yaml --all -o tools.json").succeeds();
    for row in [
        "api.yaml | https://pets.example/v1 | javascript:alert(1) | not an absolute http URL",
        "api.yaml | https://pets.example/v1 | file:///etc/passwd | not an absolute http URL",
        "api.yaml | https://pets.example/v1 | http://169.254.169.254/latest | does not use TLS",
        "api.yaml | https://login.example/a | javascript:alert(1) | left out: has no https URL in `authorizationUrl`",
        "api.yaml | https://login.example/t | http://169.254.169.254/t | left out: has no https URL in `tokenUrl`",
        "api.yaml | Pets API | Tools | left out: would have the secret TOOLS_API_KEY",
        "api.yaml | Pets API | AWS | left out: would have the secret AWS_API_KEY",
        "tools.json | https://pets.example/v1 | javascript:alert(1) | no path can be appended",
        "tools.json | https://pets.example/v1 | file:///etc/passwd | no path can be appended",
        "tools.json | https://pets.example/v1 | http://169.254.169.254/latest | does not use TLS",
        "tools.json | https://login.example/a | javascript:alert(1) | must be an https:// URL",
        "tools.json | https://login.example/t | http://169.254.169.254/t | does not use TLS",
        "tools.json | PETS_API_KEY | TOOLS_API_KEY | uses for itself",
        "tools.json | PETS_API_KEY | AWS_SECRET_ACCESS_KEY | uses for itself",
        "tools.json | Pets.GetPet@ | Pets.\\u001b[2J@ | Pets.\u{fffd}[2J@",
    ] {
        let [file, from, to, expected] = row.split(" | ").collect::<Vec<_>>().try_into().unwrap();
        let text = folder.read(file);
        assert!(text.contains(from), "{row}");
        folder.write("edited", &text.replace(from, to));
        let left_out = expected.strip_prefix("left out: ");
        let mut printed = vec![printed_until("Claude Code", &folder, "edited")];
        assert_eq!(
            printed[0].contains("Serving"),
            left_out.is_some(),
            "{printed:?}"
        );
        if file == "tools.json" {
            printed.push(packed(&folder));
        }
        for it in printed {
            is_harmless(&it);
            assert!(it.contains(left_out.unwrap_or(expected)), "{row}: {it}");
        }
    }
}
