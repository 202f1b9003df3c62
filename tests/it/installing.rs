//! The commands with which pages and workflows install cargo-lambda and SAM, typed where `python3` is a
//! system's: it has no packages, and takes none (PEP 668).
//!
//! cargo-lambda compiles with `python3 -m ziglang`, so the first `python3` in `PATH` has to be that of
//! the environment into which it is installed. Small scripts take the places of Python and of both
//! packages.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Command,
};

use test_support::{
    documents::{blocks, pages},
    repository,
};

/// Programs, each with its folder: `system` is in `PATH`, an environment gets copies of `environment`, and
/// installed packages are copies of `packages`.
const PROGRAMS: [(&str, &str); 9] = [
    (
        "system/python3",
        "[ \"$1 $2\" = '-m venv' ] || { echo \"No module named $2\" >&2; exit 1; }\n\
         mkdir -p \"$3/bin\"; cp \"$PROGRAMS\"/environment/* \"$3/bin\"",
    ),
    ("system/pip", "echo externally-managed-environment; exit 1"),
    ("system/pip3", "exec pip \"$@\""),
    (
        "system/pipx",
        "exec \"$PROGRAMS/environment/pip\" \"$@\" --into \"$PROGRAMS/system\"",
    ),
    ("system/cargo", "shift; exec cargo-lambda \"$@\""),
    (
        "environment/pip",
        "into=${0%/*}\n\
         case \"$*\" in *' --into '*) into=${*##* } ;; esac\n\
         for package; do cp \"$PROGRAMS/packages/${package%%==*}\" \"$into/\" 2>/dev/null || :; done\n\
         [ ! -e \"$into/aws-sam-cli\" ] || mv \"$into/aws-sam-cli\" \"$into/sam\"",
    ),
    ("environment/python3", "[ \"$1 $2\" = '-m ziglang' ]"),
    ("packages/cargo-lambda", "exec python3 -m ziglang"),
    ("packages/aws-sam-cli", "exec cargo lambda build"),
];

/// A machine with a bare Python.
struct Machine(PathBuf);

impl Machine {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("bare-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        for (path, script) in PROGRAMS {
            let path = folder.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        Self(folder)
    }

    /// Runs commands, and then builds with cargo-lambda and, if it was installed, with SAM. After each
    /// command, `PATH` gets what the command has written to `GITHUB_PATH`.
    fn builds_after(&self, commands: &[&str]) -> Result<(), String> {
        let added = "\n[ ! -e \"$GITHUB_PATH\" ] || PATH=$(cat \"$GITHUB_PATH\"):$PATH\n";
        let mut script = commands.join(added) + added + "cargo lambda build\n";
        if commands.concat().contains("aws-sam-cli") {
            script += "sam build\n";
        }
        let programs = self.0.as_path();
        let mut shell = Command::new("sh");
        shell
            .args(["-ec", &script])
            .current_dir(programs)
            .env_clear();
        shell.env(
            "PATH",
            format!("{}:/usr/bin:/bin", programs.join("system").display()),
        );
        shell.env("HOME", programs.join("home"));
        shell.env("PROGRAMS", programs);
        shell.env("GITHUB_PATH", programs.join("github-path"));
        let output = shell.output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8_lossy(&text).into_owned();
        output.status.success().then_some(()).ok_or(text)
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Returns the commands of a text that concern Python packages.
fn installing(text: &str) -> Vec<&str> {
    let lines = text.lines().map(str::trim);
    let commands = lines.map(|line| line.strip_prefix("- run: ").unwrap_or(line));
    let words = |line: &str| line.contains("-m venv ") || line.contains("pip");
    commands
        .filter(|line| words(line) && line.contains("install"))
        .collect()
}

/// Returns the pages, and the READMEs and workflows of the templates, each with its commands.
fn texts() -> Vec<(String, String)> {
    let mut pages = pages();
    for template in ["function", "openapi"] {
        for file in ["README.md", ".github/workflows/ci.yml"] {
            let path = format!("templates/{template}/{file}");
            let text = fs::read_to_string(repository(&path)).unwrap();
            pages.push((path, text));
        }
    }
    let commands = |(path, text): (String, String)| {
        if Path::new(&path).extension().is_some_and(|it| it == "yml") {
            return vec![(path, text)];
        }
        let blocks = blocks(&path, &text).into_iter();
        let blocks = blocks.filter(|it| ["console", "yaml"].contains(&&*it.language));
        // A workflow runs on a machine of its own.
        let (console, yaml): (Vec<_>, Vec<_>) = blocks.partition(|it| it.language == "console");
        [console, yaml]
            .map(|blocks| {
                let text: String = blocks.into_iter().map(|it| it.text).collect();
                (path.clone(), text)
            })
            .into()
    };
    pages.into_iter().flat_map(commands).collect()
}

#[test]
fn what_the_pages_install_builds_where_python_is_bare() {
    let mut count = 0;
    for (path, text) in texts() {
        let commands = installing(&text);
        if commands.is_empty() {
            continue;
        }
        let built = Machine::new("pages").builds_after(&commands);
        assert_eq!(built, Ok(()), "{path}: {commands:#?}");
        count += 1;
    }
    assert!(count >= 13, "{count}");
}

#[test]
fn a_bare_python_builds_nothing() {
    let environment = "python3 -m venv ~/e && ~/e/bin/pip install aws-sam-cli==1 cargo-lambda==1";
    for (command, builds) in [
        (
            format!("{environment} && export PATH=\"$HOME/e/bin:$PATH\""),
            true,
        ),
        (
            format!("{environment} && echo ~/e/bin >>\"$GITHUB_PATH\""),
            true,
        ),
        (
            format!("{environment} && export PATH=\"$PATH:$HOME/e/bin\""),
            false,
        ),
        (environment.to_owned(), false),
        ("pip install cargo-lambda==1".to_owned(), false),
        ("pipx install cargo-lambda==1".to_owned(), false),
    ] {
        let built = Machine::new("table").builds_after(&[&command]);
        assert_eq!(built.is_ok(), builds, "{command}: {built:?}");
    }
}
