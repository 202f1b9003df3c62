//! The workflows on GitHub, and `tests/release`, which decides whether a tree may become a release.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use test_support::{node, repository};

const VERSION: &str = env!("CARGO_PKG_VERSION");
const URL: &str = "https://git.example.com/tools";

/// A copy of the files that `tests/release` reads.
struct Tree(PathBuf);

impl Tree {
    /// Returns a tree that may become a release.
    fn new(name: &str) -> Self {
        let tree = Self(Path::new(env!("CARGO_TARGET_TMPDIR")).join(name));
        let _ = fs::remove_dir_all(&tree.0);
        for file in [
            "tests/release",
            "Cargo.toml",
            "templates/function/Cargo.toml{{nil}}",
            "templates/openapi/Cargo.toml{{nil}}",
        ] {
            tree.write(file, &fs::read_to_string(repository(file)).unwrap());
        }
        tree.replace("Cargo.toml", env!("CARGO_PKG_REPOSITORY"), URL);
        tree.write("SECURITY.md", "Write to security@example.com.\n");
        let text = format!("# Changelog\n\n## Unreleased\n\n## {VERSION}\n\n- All.\n\n## 0.0.1\n");
        tree.write("CHANGELOG.md", &text);
        tree.write("README.md", "# Tools\n");
        tree.write("docs/releasing.md", "# Releasing\n");
        tree
    }

    fn write(&self, file: &str, text: &str) {
        let path = self.0.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn replace(&self, file: &str, from: &str, to: &str) {
        let text = fs::read_to_string(self.0.join(file)).unwrap();
        assert!(text.contains(from), "{file}: {from}");
        self.write(file, &text.replace(from, to));
    }

    fn release(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new("python3");
        command.arg(self.0.join("tests/release")).args(arguments);
        command.output().unwrap()
    }

    /// Checks that the tree may not become the release, for this reason alone.
    #[track_caller]
    fn is_refused(&self, arguments: &[&str], reason: &str) {
        let output = self.release(arguments);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert_eq!(String::from_utf8_lossy(&output.stderr).trim(), reason);
    }
}

fn tag() -> String {
    format!("v{VERSION}")
}

#[test]
#[ignore = "needs Python; run tests/all"]
fn a_release_has_the_section_of_the_changelog_as_its_notes() {
    let tree = Tree::new("releasable");
    for arguments in [&[&*tag()][..], &[&tag(), "--repository", URL]] {
        let output = tree.release(arguments);
        assert!(output.status.success(), "{output:?}");
        assert_eq!(String::from_utf8_lossy(&output.stdout), "- All.\n");
    }
}

#[test]
#[ignore = "needs Python; run tests/all"]
fn a_tag_that_does_not_fit_the_tree_is_refused() {
    let series = VERSION.rsplit_once('.').unwrap().0;
    let [manifest, template] = ["Cargo.toml", "templates/function/Cargo.toml{{nil}}"];
    let requirement = format!("crates/core\", version = \"={VERSION}\"");
    let section = format!("## {VERSION}");
    let default = format!("version = \"{series}\"");
    for (file, from, to, reason) in [
        (
            manifest,
            &*requirement,
            "crates/core\", version = \"0.0.9\"",
            format!("Cargo.toml requires lambda_tools_core \"0.0.9\", not \"={VERSION}\""),
        ),
        (
            manifest,
            URL,
            "https://x.example/y",
            "repository in Cargo.toml is https://x.example/y, which is a placeholder".into(),
        ),
        (
            template,
            &*default,
            "version = \"9.9\"",
            format!("{template} does not depend on lambda_tools {series} by default"),
        ),
        (
            "CHANGELOG.md",
            &*section,
            "## 9.9.9",
            format!("CHANGELOG.md has no section {VERSION}"),
        ),
        (
            "CHANGELOG.md",
            "Unreleased\n",
            "Unreleased\n\n- More.\n",
            "CHANGELOG.md must begin with an empty section Unreleased".into(),
        ),
        (
            "README.md",
            "# Tools",
            "These tools are not on\ncrates.io yet.",
            "README.md says \"not on crates.io yet\"".into(),
        ),
        (
            "docs/releasing.md",
            "# Releasing",
            "Nothing is published yet.",
            "docs/releasing.md says \"Nothing is published yet\"".into(),
        ),
        (
            "SECURITY.md",
            "security@example.com",
            "the maintainers",
            format!(
                "SECURITY.md has no contact: neither an address for mail nor \
                 {URL}/security/advisories/new"
            ),
        ),
    ] {
        let tree = Tree::new("refused");
        tree.replace(file, from, to);
        tree.is_refused(&[&tag()], &reason);
    }
    let tree = Tree::new("refused");
    let other = format!("the tag is v9.9.9, and the version in Cargo.toml is {VERSION}");
    tree.is_refused(&["v9.9.9"], &other);
    let elsewhere = "https://git.example.com/fork";
    let other = format!("repository in Cargo.toml is {URL}, and this is {elsewhere}");
    tree.is_refused(&[&tag(), "--repository", elsewhere], &other);
}

/// Publishes two crates, where `cargo` and `sleep` are these functions of Bash.
fn publish(cargo: &str, sleep: &str) -> Output {
    let mut command = Command::new(repository(".github/publish"));
    command.args(["one", "two"]).env_remove("REGISTRY");
    command.env("BASH_FUNC_cargo%%", cargo);
    command.env("BASH_FUNC_sleep%%", sleep);
    command.output().unwrap()
}

#[test]
#[ignore = "needs Bash 4; run tests/all"]
fn publishing_waits_until_crates_io_accepts_a_new_crate() {
    let refusal = "error: the remote server responded with an error (status 429 Too Many \
                   Requests): You have published too many new crates";
    let cargo =
        |accepts: &str| format!("() {{ {accepts} || {{ echo '{refusal}'; return 101; }}; }}");
    let output = publish(
        &cargo("[[ $* == *one || -n ${slept-} ]]"),
        "() { slept=$1; }",
    );
    assert!(output.status.success(), "{output:?}");
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "one: published\n\
         two: too many new crates; the next attempt is in ten minutes\n\
         two: published\n"
    );
    let output = publish(&cargo("false"), "() { echo waits; }");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let printed = String::from_utf8_lossy(&output.stdout);
    assert_eq!(printed.matches("waits").count(), 2, "{printed}");
    assert_eq!(String::from_utf8_lossy(&output.stderr).trim(), refusal);
}

/// Returns the workflows of this repository and of generated projects.
fn workflows() -> Vec<PathBuf> {
    let folders = [
        ".github/workflows",
        "templates/function/.github/workflows",
        "templates/openapi/.github/workflows",
    ];
    let entries = folders.map(|folder| fs::read_dir(repository(folder)).unwrap());
    let paths = entries.into_iter().flatten().map(|it| it.unwrap().path());
    paths.map(|it| it.canonicalize().unwrap()).collect()
}

#[test]
#[ignore = "needs zizmor and actionlint; run tests/all"]
fn linters_find_nothing_in_workflows() {
    let mut zizmor = Command::new(repository("target/venv-workflows/bin/zizmor"));
    zizmor.args(["--offline", "--quiet"]).args(workflows());
    let output = zizmor.output().unwrap();
    assert!(output.status.success(), "{output:#?}");
    let mut actionlint = Command::new(node());
    actionlint.current_dir(repository("target/workflows"));
    actionlint.arg("lint.mjs").args(workflows());
    let output = actionlint.output().unwrap();
    assert!(output.status.success(), "{output:#?}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "");
}
