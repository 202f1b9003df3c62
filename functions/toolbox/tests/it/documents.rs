//! Runs the Python code of the pages. `tests/generated` types their commands.

use std::process;

use test_support::documents::{ADDRESS, DEPLOYED, blocks, pages};

use crate::{
    clients::stdout_of,
    support::{Running, installed, toolbox},
};

/// The key that tests send in place of the pages' `YOUR_KEY`.
pub(crate) const KEY: &str = "the-key-of-the-pages";

#[test]
#[ignore = "needs the Python clients oxp and mcp; run tests/all"]
fn the_python_code_of_the_pages_works() {
    let (_running, local) = Running::serving(&mut toolbox());
    let mut with_key = toolbox();
    with_key.env("TOOLS_AUTH", "api-key");
    with_key.env("TOOLS_API_KEY", KEY);
    let (_running_with_key, deployed) = Running::serving(&mut with_key);
    let output_of = |script: &str| {
        let script = script.replace(ADDRESS, &local).replace(DEPLOYED, &deployed);
        let script = script.replace("YOUR_KEY", KEY);
        let mut python = process::Command::new(installed("python"));
        python.args(["-c", &script]).output().unwrap()
    };
    let (mut count, mut count_deployed) = (0, 0);
    for (path, text) in pages() {
        let blocks = blocks(&path, &text).into_iter();
        for block in blocks.filter(|it| it.language == "python" && it.mark.is_none()) {
            let stdout = stdout_of(&output_of(&block.text));
            // The sum of the calls of `Calculator.Add`.
            assert!(stdout.contains("15"), "{}: {stdout}", block.place);
            count += 1;
            if block.text.contains(DEPLOYED) {
                let without_key = output_of(&block.text.replace("YOUR_KEY", "ANOTHER_KEY"));
                assert!(!without_key.status.success(), "{}", block.place);
                count_deployed += 1;
            }
        }
    }
    assert!(count > count_deployed && count_deployed > 0);
}
