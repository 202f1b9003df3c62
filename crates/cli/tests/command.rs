//! The command as it is typed: what it prints and writes, and how it ends.

use std::{
    env, fs,
    io::{Read, Write},
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Command, Output},
    thread,
};

use lambda_tools_openapi::ApiTools;
use serde_json::Value;

const PETS: &str = "
openapi: 3.1.0
info: {title: Pets API, version: 1.0.0}
servers: [{url: https://pets.example/v1}]
security: [{key: []}]
components:
  securitySchemes: {key: {type: apiKey, in: header, name: X-Key}}
paths:
  /pets/{id}:
    get:
      operationId: getPet
      summary: Returns a pet.
      tags: [Pets]
      parameters: [{name: id, in: path, required: true, description: The id., schema: {type: integer}}]
      responses:
        200:
          description: A pet
          content: {application/json: {schema: {type: object}}}
        404: {description: No such pet}
    delete:
      operationId: deletePet
      tags: [Pets, 'Old, unused']
      parameters: [{name: id, in: path, required: true, schema: {type: integer}}]
      responses: {204: {description: Deleted}}
  /health:
    get: {operationId: getHealth, security: [], responses: {204: {description: Works}}}
";

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

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lambda-tools"));
        command.arg("openapi").args(arguments).current_dir(&self.0);
        command
    }

    fn run(&self, arguments: &[&str]) -> Ended {
        self.command(arguments).output().unwrap().into()
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
        assert!(self.stderr.contains(expected), "{self:#?}");
        assert_eq!(self.stdout, "");
    }
}

#[test]
fn without_a_choice_it_lists_what_there_is() {
    let ended = Folder::new("groups").run(&["pets.yaml"]);
    assert_eq!(ended.code, Some(2));
    let expected = "Operations by tag, or by path if they have none:\n     2  Pets\n     1  Old, unused\n     1  /health\n";
    assert_eq!(ended.stdout, expected);
    assert!(ended.stderr.contains("--include-tag"), "{}", ended.stderr);
}

#[test]
fn it_writes_a_file_and_says_what_is_in_it() {
    let folder = Folder::new("file");
    let ended = folder
        .run(&[
            "pets.yaml",
            "--all",
            "-o",
            "tools.json",
            "--report",
            "report.jsonl",
        ])
        .succeeds();
    assert_eq!(folder.tools("tools.json").len(), 3);
    assert_eq!(folder.files(), ["pets.yaml", "report.jsonl", "tools.json"]);
    let first = ended.stdout.lines().next().unwrap();
    assert!(
        first.starts_with("Tools: 3 (") && first.ends_with(" KB), from 3 of 3 operations"),
        "{first}"
    );
    let secrets = folder.tools("tools.json").secrets().join(", ");
    assert!(
        !secrets.is_empty()
            && ended
                .stdout
                .contains(&format!("Secrets to set: {secrets}\n")),
        "{ended:?}"
    );
    assert_eq!(ended.stderr, "");
    let report = folder.read("report.jsonl");
    let notes: Vec<Value> = report
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert!(
        notes
            .iter()
            .any(|it| it["kind"] == "note" && it["operation"] == "DELETE /pets/{id}"),
        "{report}"
    );
}

#[test]
fn without_a_file_nothing_is_written() {
    let folder = Folder::new("nothing");
    let ended = folder
        .run(&["pets.yaml", "--include-tag", "Old, unused"])
        .succeeds();
    assert!(
        ended.stderr.starts_with("note: DELETE /pets/{id}: "),
        "{ended:?}"
    );
    assert_eq!(folder.files(), ["pets.yaml"]);
}

#[test]
fn options_reach_the_library() {
    let folder = Folder::new("options");
    let options = "pets.yaml --include-operation getPet,deletePet --exclude deletePet --toolkit Zoo --tool-version 2.1.0 \
        --rename getPet=Get --describe getPet=Gets. --secret key=ZOO_KEY --base-url https://zoo.example -o tools.json";
    folder
        .run(&options.split_whitespace().collect::<Vec<_>>())
        .succeeds();
    let tools: Value = serde_json::from_str(&folder.read("tools.json")).unwrap();
    assert_eq!(tools["tools"].as_array().unwrap().len(), 1);
    assert_eq!(tools["tools"][0]["id"], "Zoo.Get@2.1.0");
    assert!(
        tools["tools"][0]["description"]
            .as_str()
            .unwrap()
            .starts_with("Gets.")
    );
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
        .run(&[
            "pets.yaml",
            "--all",
            "--overlay",
            "pets.overlay.yaml",
            "-o",
            "tools.json",
        ])
        .succeeds();
    assert_eq!(folder.tools("tools.json").len(), 2);
    let warning = "warning: pets.overlay.yaml: action 2 ($.paths['/cats']) matches nothing\n";
    assert!(ended.stderr.starts_with(warning), "{ended:?}");
    folder.write(
        "pets.overlay.yaml",
        "overlay: 1.0.0\nactions: [{target: $..}]",
    );
    folder
        .run(&["pets.yaml", "--all", "--overlay", "pets.overlay.yaml"])
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
    folder.run(&["swagger.json", "--all"]).fails("2.0");
    folder
        .run(&["pets.yaml", "--include-tag", "Cats"])
        .fails("no tag \"Cats\"");
    folder
        .run(&["none.yaml", "--all"])
        .fails("none.yaml cannot be read: ");
    folder
        .run(&["broken.yaml", "--all"])
        .fails("broken.yaml is not valid: ");
    folder
        .run(&["broken.json", "--all"])
        .fails("broken.json is not valid: ");
    folder
        .run(&["latin.yaml", "--all"])
        .fails("latin.yaml is not text in UTF-8");
    folder
        .run(&["pets.yaml", "--all", "-o", "none/tools.json"])
        .fails("none/tools.json cannot be written: ");
    folder
        .run(&["pets.yaml", "--all", "--toolkit", "Not a name"])
        .fails("the toolkit must be letters, digits and underscores");
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
    let found = format!(
        "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{PETS}",
        PETS.len()
    );
    folder
        .run(&[&served(&found), "--all", "-o", "tools.json"])
        .succeeds();
    assert_eq!(folder.tools("tools.json").len(), 3);
    let missing = "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n";
    folder
        .run(&[&served(missing), "--all"])
        .fails("cannot be read: the server answers 404 Not Found");
    let moved = "HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n";
    folder
        .run(&[&served(moved), "--all"])
        .fails("it redirects to a URL that is not https");
    let cut = "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nopenapi";
    folder
        .run(&[&served(cut), "--all"])
        .fails("cannot be read: ");
}

#[cfg(unix)]
#[test]
fn projects_are_generated_by_cargo_lambda() {
    use std::os::unix::fs::PermissionsExt;

    let folder = Folder::new("project");
    folder.write(
        "cargo-lambda",
        "#!/bin/sh\nprintf '%s\\n' \"$@\" >arguments\nmkdir \"$3\"\n",
    );
    fs::set_permissions(
        folder.0.join("cargo-lambda"),
        fs::Permissions::from_mode(0o755),
    )
    .unwrap();
    let path = format!("{}:{}", folder.0.display(), env::var("PATH").unwrap());
    let options = [
        "pets.yaml",
        "--all",
        "--secret",
        "key=KEY",
        "--new",
        "pets",
        "--template",
        "mine",
        "--render-var",
        "auth=jwt",
    ];
    let ended = Ended::from(
        folder
            .command(&options)
            .env("PATH", &path)
            .output()
            .unwrap(),
    )
    .succeeds();
    assert!(ended.stdout.starts_with("Tools: 3 ("), "{ended:?}");
    let expected = "lambda\nnew\npets\n--no-interactive\n--template\nmine\n--render-var\nopenapi=pets.yaml\n\
        --render-var\napi_secrets=KEY\n--render-var\nauth=jwt\n";
    assert_eq!(folder.read("arguments"), expected);
    assert_eq!(folder.tools("pets/tools.json").len(), 3);
    folder.run(&options).fails("pets already exists");
    let from_a_clone = |name: &str| {
        let options = [
            "pets.yaml",
            "--all",
            "--secret",
            "key=KEY",
            "--new",
            name,
            "--library",
            "clone",
        ];
        Ended::from(
            folder
                .command(&options)
                .env("PATH", &path)
                .output()
                .unwrap(),
        )
    };
    from_a_clone("cats").fails("clone cannot be read: ");
    fs::create_dir(folder.0.join("clone")).unwrap();
    let clone = folder.0.canonicalize().unwrap().join("clone");
    let elsewhere = folder.0.join("dogs").display().to_string();
    for (name, path) in [
        ("cats", "../clone"),
        (&elsewhere, &clone.display().to_string()),
    ] {
        from_a_clone(name).succeeds();
        let expected = format!(
            "lambda\nnew\n{name}\n--no-interactive\n--template\nclone/templates/openapi\n--render-var\n\
             lambda_tools={path}\n"
        );
        assert!(
            folder.read("arguments").starts_with(&expected),
            "{expected}"
        );
    }
    fs::remove_dir_all(folder.0.join("pets")).unwrap();
    folder
        .command(&options)
        .env("PATH", "/none")
        .output()
        .map(Ended::from)
        .unwrap()
        .fails("cargo-lambda is not on PATH");
}

#[test]
fn the_commands_of_the_readme_work() {
    let folder = Folder::new("readme");
    let lines = include_str!("../README.md").lines();
    let typed = lines.filter_map(|line| line.strip_prefix("lambda-tools openapi "));
    let words = typed.map(|line| line.split('#').next().unwrap().split_whitespace());
    let ended = words.map(|words| folder.run(&words.collect::<Vec<_>>()));
    let [list, file, help] = ended.collect::<Vec<_>>().try_into().unwrap();
    assert!(list.stdout.contains("2  Pets"), "{list:?}");
    file.succeeds();
    assert_eq!(folder.tools("tools.json").len(), 2);
    assert!(help.succeeds().stdout.contains("--include-tag"));
}
