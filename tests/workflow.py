"""Runs the steps of a workflow in the current folder, as they are written: workflow.py FILE. Steps that only a runner of
GitHub can run are replaced by what they would provide; the output says which."""
import pathlib
import re
import subprocess
import sys

import yaml

# For actions and commands that this machine cannot run: what takes their place, and a command that shows it.
REPLACED = {
    r"actions/checkout@": ("this clone", "git rev-parse HEAD"),
    r"Swatinem/rust-cache@": ("the target folder of this machine", "true"),
    r"rustup toolchain install stable .*": ("the compiler of this machine", "cargo clippy --version && cargo fmt --version"),
    r"python3 -m venv .*pip install cargo-lambda==(\S+) .*": (r"the installed cargo-lambda \1", r"cargo lambda --version | grep -wF '\1'"),
}


def replacement(step):
    """Returns what takes the place of a step, and the command that shows it, or None."""
    for pattern, texts in REPLACED.items():
        found = re.match(pattern, step)
        if found:
            return [found.expand(text) for text in texts]
    return None


def check(where, mapping, known):
    """Ends the program if a part of the workflow has keys that this program would ignore."""
    if unknown := mapping.keys() - known:
        sys.exit(f"{where}: these keys are not known here: {unknown}")


workflow = yaml.safe_load(pathlib.Path(sys.argv[1]).read_text())
# YAML 1.1 reads the key `on` as a boolean.
check("the workflow", workflow, {"name", True, "permissions", "jobs"})
for job, definition in workflow["jobs"].items():
    check(job, definition, {"name", "runs-on", "steps"})
    for step in definition["steps"]:
        check(f"a step of {job}", step, {"name", "run", "uses", "with"})
        text = step.get("run") or step["uses"]
        replaced = replacement(text)
        if not replaced and "uses" in step:
            sys.exit(f"{job}: nothing here takes the place of {text}")
        print(f"{job}: {text}" + (f" (replaced by {replaced[0]})" if replaced else ""), flush=True)
        subprocess.run(["bash", "-e", "-c", replaced[1] if replaced else text], check=True)
