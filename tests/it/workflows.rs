//! The workflows on GitHub, of this repository and of generated projects.

/// `.ci/long` installs what these tests need, and runs them.
mod long {
    use std::{fs, path::PathBuf, process::Command};

    use test_support::{installed, node, repository};

    fn workflows() -> Vec<PathBuf> {
        let folders = [".github/workflows", "templates/function/.github/workflows"];
        let entries = folders.map(|folder| fs::read_dir(repository(folder)).unwrap());
        let paths = entries.into_iter().flatten().map(|it| it.unwrap().path());
        paths.map(|it| it.canonicalize().unwrap()).collect()
    }

    #[test]
    #[ignore = "needs zizmor and actionlint; run .ci/long"]
    fn linters_find_nothing_in_workflows() {
        let mut zizmor = Command::new(installed("zizmor"));
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
}
