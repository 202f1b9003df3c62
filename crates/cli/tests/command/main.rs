//! The command as it is typed: what it prints and writes, and how it ends.

mod hostile;
mod long;
mod serve;
mod update;
mod zip;

use std::{
    fs,
    io::{Read, Write},
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Command, Output},
    thread,
};

use lambda_tools::from_openapi::ApiTools;
use serde_json::{Value, json};
use test_support::isolated;

const PETS: &str = include_str!("pets.yaml");

/// A folder of one test, in which the command runs.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("pets.yaml"), PETS).unwrap();
        Self(folder)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.0.join(name), text).unwrap();
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.0.join(name)).unwrap()
    }

    fn json(&self, name: &str) -> Value {
        serde_json::from_str(&self.read(name)).unwrap()
    }

    fn tools(&self, name: &str) -> ApiTools {
        ApiTools::from_json(&self.read(name)).unwrap()
    }

    fn files(&self) -> Vec<String> {
        let files = fs::read_dir(&self.0).unwrap();
        let mut names: Vec<_> = files
            .map(|it| it.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    /// Returns the command with these arguments, which serves on a free port.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = isolated(Command::new(env!("CARGO_BIN_EXE_lambda-tools")));
        command
            .args(arguments)
            .current_dir(&self.0)
            .env("PORT", "0");
        command
    }

    /// Types the command with these words.
    fn types(&self, words: &str) -> Ended {
        let words: Vec<_> = words.split_whitespace().collect();
        self.command(&words).output().unwrap().into()
    }

    /// Runs `lambda-tools openapi` with these words.
    fn run(&self, words: &str) -> Ended {
        self.types(&format!("openapi {words}"))
    }

    fn run_with(&self, arguments: &[&str]) -> Ended {
        let arguments = [&["openapi"], arguments].concat();
        self.command(&arguments).output().unwrap().into()
    }
}

/// How a command has ended.
#[derive(Debug)]
struct Ended {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

impl From<Output> for Ended {
    fn from(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Self {
            code: output.status.code(),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }
}

impl Ended {
    #[track_caller]
    fn succeeds(self) -> Self {
        assert_eq!(self.code, Some(0), "{self:#?}");
        self
    }

    #[track_caller]
    fn fails(self, expected: &str) {
        assert_eq!(self.code, Some(1), "{self:#?}");
        assert_eq!(self.stdout, "");
        assert!(self.stderr.contains(expected), "{self:#?}");
    }
}

#[test]
fn without_a_choice_it_lists_what_there_is() {
    let ended = Folder::new("groups").run("pets.yaml");
    assert_eq!((ended.code, &*ended.stderr), (Some(0), ""));
    let expected = "Operations by tag, or by path if they have none:\n     2  Pets\n     1  Old, unused\n     1  /health\n\
        Choose some of them, single ones with --include-operation, or --all; for example:\n  \
        lambda-tools openapi pets.yaml --include-tag Pets -o tools.json\n";
    assert_eq!(ended.stdout, expected);
}

#[test]
fn it_writes_a_file_and_says_what_is_in_it() {
    let folder = Folder::new("file");
    let ended = folder
        .run("pets.yaml --all -o tools.json --report report.jsonl")
        .succeeds();
    assert_eq!(folder.tools("tools.json").ids().count(), 3);
    assert_eq!(folder.files(), ["pets.yaml", "report.jsonl", "tools.json"]);
    let first = ended.stdout.lines().next().unwrap();
    assert!(first.starts_with("Tools: 3 ("), "{first}");
    assert!(first.ends_with(" KB), from 3 of 3 operations"), "{first}");
    let secrets = folder.tools("tools.json").secrets().join(", ");
    let names = format!("Secrets to set: {secrets}\n");
    assert!(!secrets.is_empty() && ended.stdout.contains(&names));
    assert_eq!(ended.stderr, "");
    let report = folder.read("report.jsonl");
    let mut notes = report.lines().map(|it| serde_json::from_str(it).unwrap());
    let is_of_delete = |it: Value| it["kind"] == "note" && it["operation"] == "DELETE /pets/{id}";
    assert!(notes.any(is_of_delete), "{report}");
}

#[test]
fn without_a_file_nothing_is_written() {
    let folder = Folder::new("nothing");
    let options = ["pets.yaml", "--include-tag", "Old, unused"];
    let ended = folder.run_with(&options).succeeds();
    let note = "note: DELETE /pets/{id}: ";
    assert!(ended.stderr.starts_with(note), "{ended:?}");
    assert_eq!(folder.files(), ["pets.yaml"]);
    let names =
        "Tools: 1 (2 KB), from 1 of 3 operations\n  Pets.DeletePet@1.0.0  DELETE /pets/{id}\n";
    assert!(ended.stdout.starts_with(names), "{ended:?}");
}

#[test]
fn a_file_that_was_edited_is_not_overwritten() {
    let folder = Folder::new("edited");
    folder
        .run("pets.yaml --include-tag PETS -o tools.json")
        .succeeds();
    let whole = folder.json("tools.json");
    let made_with = ["pets.yaml", "--include-tag", "PETS", "-o", "tools.json"];
    assert_eq!(whole["made_with"], json!(made_with));
    // The same text in another layout is no other file.
    folder.write("tools.json", &whole.to_string());
    folder.run("pets.yaml --all -o tools.json").succeeds();
    assert_eq!(folder.tools("tools.json").ids().count(), 3);
    let made = folder.read("tools.json");
    for edited in [
        made.replace("Returns a pet.", "Returns a cat."),
        made.replace("\"checksum\"", "\"check\""),
        "notes".to_owned(),
    ] {
        folder.write("tools.json", &edited);
        folder
            .run("pets.yaml --all -o tools.json")
            .fails("tools.json has been edited: write to another file");
        assert_eq!(folder.read("tools.json"), edited);
    }
    folder
        .run("pets.yaml --all -o tools.json --force")
        .succeeds();
    folder.write("tools.json", "");
    folder.run("pets.yaml --all -o tools.json").succeeds();
}

#[test]
fn what_is_left_out_is_said_once() {
    let folder = Folder::new("once");
    let vault = "  /vault:\n    get: {operationId: vault, summary: S., responses: {}, security: [{tls: []}]}\n";
    let schemes = PETS.replace("Schemes: {key:", "Schemes: {tls: {type: mutualTLS}, key:") + vault;
    folder.write("pets.yaml", &schemes);
    let ended = folder.run("pets.yaml --all").succeeds();
    let printed = ended.stdout + &ended.stderr;
    assert_eq!(printed.matches("GET /vault").count(), 1, "{printed}");
    assert!(printed.contains("--bearer SECRET_ID"), "{printed}");
}

#[test]
fn options_reach_the_library() {
    let folder = Folder::new("options");
    let options = "pets.yaml --include-operation getPet,deletePet --exclude deletePet --toolkit Zoo --tool-version 2.1.0 \
        --rename getPet=Get --describe getPet=Gets. --secret key=ZOO_KEY --base-url https://zoo.example -o tools.json";
    folder.run(options).succeeds();
    let tools = folder.json("tools.json");
    assert_eq!(tools["tools"].as_array().unwrap().len(), 1);
    assert_eq!(tools["tools"][0]["id"], "Zoo.Get@2.1.0");
    let description = tools["tools"][0]["description"].as_str().unwrap();
    assert!(description.starts_with("Gets."), "{description}");
    assert_eq!(tools["base_url"], "https://zoo.example");
    assert_eq!(folder.tools("tools.json").secrets(), ["ZOO_KEY"]);
}

#[test]
fn overlays_change_the_document_first() {
    let folder = Folder::new("overlay");
    folder.write(
        "pets.overlay.yaml",
        "overlay: 1.0.0\ninfo: {title: Fewer, version: 1.0.0}\nactions:\n\
         - {target: \"$.paths['/pets/{id}'].delete\", remove: true}\n\
         - {target: \"$.paths['/cats']\", remove: true}\n",
    );
    let ended = folder
        .run("pets.yaml --all --overlay pets.overlay.yaml -o tools.json")
        .succeeds();
    assert_eq!(folder.tools("tools.json").ids().count(), 2);
    let warning = "warning: pets.overlay.yaml: action 2 ($.paths['/cats']) matches nothing\n";
    assert!(ended.stderr.starts_with(warning), "{ended:?}");
    folder.write(
        "pets.overlay.yaml",
        "overlay: 1.0.0\nactions: [{target: $..}]",
    );
    folder
        .run("pets.yaml --all --overlay pets.overlay.yaml")
        .fails("pets.overlay.yaml: action 1 ($..) ");
}

#[test]
fn mistakes_are_named() {
    let folder = Folder::new("mistakes");
    folder.write("swagger.json", "{\"swagger\": \"2.0\", \"paths\": {}}");
    folder.write("broken.yaml", "openapi: 3.1.0\npaths: {\n");
    folder.write("broken.json", "{\"openapi\": 3");
    folder.write("latin.yaml", "");
    fs::write(folder.0.join("latin.yaml"), b"openapi: \xe9").unwrap();
    let options = ["pets.yaml", "--all", "--toolkit", "Not a name"];
    folder
        .run_with(&options)
        .fails("the toolkit must be letters, digits and underscores");
    for row in [
        "--include-tag Cats | (--include-tag); did you mean \"Pets\"? It has \"Old, unused\", \"Pets\"",
        "--include-operation getPets | did you mean \"getPet\"?",
        "--include-path /cats | no path \"/cats\" (--include-path)",
        "--exclude deletePets | (--exclude); did you mean \"deletePet\"?",
        "--rename getPets=A | (--rename); did you mean \"getPet\"?",
        "--describe getPets=A | (--describe); did you mean \"getPet\"?",
        "--fix getPets.id=1 | (--fix); did you mean \"getPet\"?",
        "--reads getPets | (--reads); did you mean \"getPet\"?",
        "--once deletePets=60 | (--once); did you mean \"deletePet\"?",
        "--once deletePet=121 | --once takes 1 to 120 seconds",
        "--once deletePet=0 | --once takes 1 to 120 seconds",
        "--once deletePet=60 --searchable | --once takes 1 to 120 seconds, and is not for --searchable",
        "--once getPet=60 | GET /pets/{id}: --once is for operations with an effect",
        "--secret keys=A | (--secret); did you mean \"key\"?",
        "-o none/tools.json | none/tools.json cannot be written: ",
    ] {
        let (options, expected) = row.split_once(" | ").unwrap();
        let ended = folder.run(&format!("pets.yaml --all {options}"));
        ended.fails(expected);
    }
    for (file, expected) in [
        ("swagger.json", "2.0"),
        ("none.yaml", "none.yaml cannot be read: "),
        ("broken.yaml", "broken.yaml is not valid: "),
        ("broken.json", "broken.json is not valid: "),
        ("latin.yaml", "latin.yaml is not text in UTF-8"),
    ] {
        folder.run(&format!("{file} --all")).fails(expected);
    }
}

/// Answers one request on a port, and returns its URL.
fn served(response: &str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/pets.yaml", listener.local_addr().unwrap());
    let response = response.to_owned();
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        _ = stream.read(&mut [0; 4096]).unwrap();
        stream.write_all(response.as_bytes()).unwrap();
    });
    url
}

#[test]
fn documents_are_downloaded() {
    let folder = Folder::new("url");
    let found = |text: &str| {
        let length = text.len();
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}");
        served(&format!("{head}\r\n\r\n{text}"))
    };
    let options = "--all --allow-private -o tools.json";
    let found_pets = format!("{} {options}", found(PETS));
    folder.run(&found_pets).succeeds();
    assert_eq!(folder.tools("tools.json").ids().count(), 3);
    let relative = PETS.replace("https://pets.example/v1", "/v1");
    folder.write("relative.yaml", &relative);
    let not_absolute = "is not an absolute http URL, but \"/v1\": set the URL with --base-url";
    folder.run("relative.yaml --all").fails(not_absolute);
    let again = "lambda-tools openapi relative.yaml --all --base-url http://127.0.0.1:8000/v1";
    folder.run("relative.yaml --all").fails(again);
    let url = found(&relative);
    folder
        .run(&format!("{url}?key=secret {options}"))
        .succeeds();
    let tools = folder.json("tools.json");
    assert_eq!(tools["base_url"], url.replace("/pets.yaml", "/v1"));
    // The file is committed, and a key in the document's URL is not for it.
    assert_eq!(tools["made_with"][0], *url);
    for (response, expected) in [
        (
            "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n",
            "cannot be read: the server answers 404 Not Found",
        ),
        (
            "HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n",
            "it redirects to a URL that is not https",
        ),
        (
            "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nopenapi",
            "cannot be read: ",
        ),
    ] {
        let url = served(response);
        folder.run(&format!("{url} --all")).fails(expected);
    }
}

/// Texts that end a string, a comment, a value of YAML or a path, that a template or a shell would
/// evaluate, or that a terminal would obey.
const HOSTILE: [&str; 10] = [
    "\"); std::fs::write(\"/tmp/P\", \"\").unwrap(); (\"",
    "x\nfn evil() {} //",
    "*/ fn evil() {} /*",
    "!Ref Evil # &evil *evil",
    "$(touch evil)`touch evil`;evil",
    "\n  Evil:\n    Type: String\n",
    "{{ project_name }}{% if true %}evil{% endif %}",
    "../../evil\0",
    "\u{1b}]0;evil\u{7}\u{1b}[2J\u{9b}31m",
    "\revil\u{202e}live\u{2066}\u{8}\u{7f}",
];

/// Returns a document with a text in each place of which the command prints or writes something.
fn document_with(text: &str) -> Value {
    let operation = |id: &str, needs: Value| {
        json!({
            "operationId": format!("{id}{text}"), "summary": format!("Sum{text}"), "description": format!("Does{text}"),
            "tags": [format!("Tag{text}")], "security": [needs], "x-mcp": {"enabled": true},
            "parameters": [{"name": format!("p{text}"), "in": "query", "description": text, "schema": {"enum": [text, "a"], "default": text}}],
            "responses": {"200": {"description": text, "content": {"application/json": {}}}},
        })
    };
    let flow = |url: String| {
        json!({"type": "oauth2", "description": text, "flows": {"authorizationCode": {
            "authorizationUrl": url, "tokenUrl": url, "refreshUrl": text, "scopes": {format!("read{text}"): text}}}})
    };
    json!({
        "openapi": "3.1.0",
        "info": {"title": format!("Pets{text}"), "version": format!("1{text}"), "description": text},
        "servers": [{"url": "https://pets.example/v1", "description": text}],
        "tags": [{"name": format!("Tag{text}"), "description": text}],
        "components": {"securitySchemes": {
            format!("key{text}"): {"type": "apiKey", "in": "header", "name": format!("X-Key{text}")},
            format!("login{text}"): flow("https://login.example/x".to_owned()),
            format!("bad{text}"): flow(format!("https://login.example/x{text}")),
            format!("found{text}"): {"type": "openIdConnect", "openIdConnectUrl": format!("https://login.example/{text}")},
            format!("machine{text}"): {"type": "oauth2", "flows": {"clientCredentials": {"tokenUrl": format!("https://login.example/{text}")}}},
        }},
        "paths": {
            "/pets": {"get": operation("list", json!({})), "post": operation("add", json!({format!("key{text}"): []}))},
            "/mine": {"get": operation("mine", json!({format!("login{text}"): [format!("read{text}")]}))},
            "/bad": {"get": operation("bad", json!({format!("bad{text}"): []}))},
            "/found": {"get": operation("found", json!({format!("found{text}"): []}))},
            "/machine": {"get": operation("machine", json!({format!("machine{text}"): []}))},
            format!("/x{text}"): {"delete": operation("other", json!({}))},
            "/elsewhere": {"servers": [{"url": format!("https://other.example/{text}")}], "get": operation("away", json!({}))},
        },
    })
}

#[test]
fn nothing_of_a_document_is_in_a_file_but_the_tools() {
    for (number, text) in HOSTILE.iter().enumerate() {
        let folder = Folder::new(&format!("hostile-{number}"));
        folder.write("api.json", &document_with(text).to_string());
        let ended = folder.run("api.json --all -o tools.json").succeeds();
        let is_id = |it: char| it.is_ascii_uppercase() || it.is_ascii_digit() || it == '_';
        let secrets = folder.tools("tools.json").secrets();
        let are_ids = secrets.iter().all(|it| it.chars().all(is_id));
        assert!(!secrets.is_empty() && are_ids, "{secrets:?}");
        let is_name = |it: char| it.is_ascii_lowercase() || it.is_ascii_digit();
        for provider in folder.tools("tools.json").providers() {
            assert!(provider.id.chars().all(is_name), "{provider:?}");
        }
        // Of the URLs, those that a parser accepts as they are.
        let tools = folder.json("tools.json");
        for credential in tools["credentials"].as_object().unwrap().values() {
            for name in ["authorize_url", "token_url"] {
                let url = credential[name].as_str();
                let is_plain = url.is_none_or(|it| it == "https://login.example/x");
                assert!(is_plain, "{credential}");
            }
        }
        // An edited file may have it anywhere.
        let edited = json!(format!("x'{text}")).to_string();
        let edited = edited.strip_suffix('"').unwrap();
        let tools = ["title", "version", "description", "secret"].iter().fold(
            folder.read("tools.json"),
            |it, field| {
                let before = format!("\"{field}\": ");
                it.replace(&format!("{before}\""), &format!("{before}{edited}"))
            },
        );
        folder.write("tools.json", &tools);
        let zipped = zip::pack(&folder);
        // The commands to paste, in which a shell evaluates nothing.
        let commands = zipped.stdout.replace("  aws", "aws() { :; }\naws");
        let commands = commands.lines().filter(|it| it.starts_with("aws"));
        let script = commands.collect::<Vec<_>>().join("\n");
        assert!(script.contains("create-secret"), "{script}");
        let mut shell = Command::new("sh");
        shell.args(["-c", &script]).current_dir(&folder.0);
        assert!(shell.status().unwrap().success(), "{script}");
        assert_eq!(
            folder.files(),
            ["api.json", "made", "pets.yaml", "tools.json"]
        );
        assert_eq!(fs::read_dir(folder.0.join("made")).unwrap().count(), 4);
        assert_eq!(folder.read("made/template.yaml"), zip::template());
        let listed = folder.run("api.json --include-tag None");
        let url = text.replace('\0', "");
        let refused = folder.run_with(&["api.json", "--all", "--base-url", &url]);
        let ended = [ended, zipped, listed, refused].map(|it| it.stdout + &it.stderr);
        let served = ["api.json", "tools.json"]
            .map(|file| hostile::printed_until("a secret is missing", &folder, file));
        assert!(
            served.iter().all(|it| it.contains("Serving tools on")),
            "{served:?}"
        );
        for printed in ended.iter().chain(&served) {
            is_harmless(printed);
        }
    }
}

/// Checks that a terminal obeys nothing of what is printed, and that no text begins a line.
#[track_caller]
fn is_harmless(printed: &str) {
    let is_obeyed = |it: char| it.is_control() && it != '\n' || "\u{202e}\u{2066}".contains(it);
    assert!(!printed.contains(is_obeyed), "{printed:?}");
    let mut lines = printed.lines().map(str::trim_start);
    assert!(!lines.any(|it| it.starts_with("fn evil")), "{printed:?}");
}

#[test]
fn the_commands_of_the_readme_work() {
    let folder = Folder::new("readme");
    let lines = include_str!("../../README.md").lines();
    let typed = lines.filter_map(|line| line.strip_prefix("lambda-tools openapi "));
    let ended = typed.map(|line| folder.run(line.split('#').next().unwrap()));
    let [list, file, help] = ended.collect::<Vec<_>>().try_into().unwrap();
    assert!(list.stdout.contains("2  Pets"), "{list:?}");
    file.succeeds();
    assert_eq!(folder.tools("tools.json").ids().count(), 2);
    assert!(help.succeeds().stdout.contains("--include-tag"));
}
