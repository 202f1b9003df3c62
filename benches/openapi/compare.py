"""Compares the tools that this project, FastMCP and rmcp-openapi make of OpenAPI documents.

compare.py [--ours COMMAND] [--rmcp BINARY] [--python PYTHON] [--keep FOLDER] DOCUMENTS… prints a Markdown table, with
the errors of makers below it. COMMAND has {document} and {output}, for example
"lambda-tools openapi {document} --all --list-all -o {output}"; without {output}, it prints the list. BINARY is the
program of the folder rmcp, PYTHON has the packages of tests/requirements-openapi-tools.txt. --keep leaves the lists and
the answers of the checker in FOLDER.

All read the same JSON. tests/openapi/check_tools.py judges the lists: "refused" is the number of tools that break at
least one rule, "by models" of those that the API of a model refuses as they are, with the whole request that they are
in. A maker's own figures count if it writes them to standard error as {"seconds", "peak_mb"}, so that FastMCP is not
charged for the start of Python; otherwise those of its process do. The kernel counts no process smaller than this
one, which therefore loads no document itself."""

import argparse
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
TESTS = HERE.parents[1] / "tests" / "openapi"
LIMIT = 300


def measured(command, folder):
    """Runs a command. Returns its exit code, its seconds and its peak in megabytes."""
    with open(folder / "stdout", "wb") as out, open(folder / "stderr", "wb") as err:
        start = time.perf_counter()
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err)
        while True:
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            if pid:
                break
            if time.perf_counter() - start > LIMIT + 10:
                process.kill()
            time.sleep(0.002)
        seconds = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, seconds, usage.ru_maxrss * 1024 / 1e6


def own_figures(folder):
    """The last line of standard error, if it is JSON, and what else there is."""
    with open(folder / "stderr", "rb") as file:
        lines = file.read()[-20000:].decode(errors="replace").strip().splitlines()
    try:
        return json.loads(lines[-1]), lines[:-1]
    except (ValueError, IndexError):
        return {}, lines


def as_listed(path):
    """Turns a file of this project's tools into the list that MCP clients get."""
    made = json.loads(path.read_bytes())
    if isinstance(made, dict):
        tools = [
            {"name": tool["id"].split("@")[0].replace(".", "_"), "description": tool["description"], "inputSchema": tool["input"]}
            for tool in made["tools"]
        ]
        path.write_text(json.dumps(tools), encoding="utf-8")


def run(maker, command, document, folder):
    """One maker and one document: a row of the table, and an error or nothing."""
    output = folder / "list.json"
    output.unlink(missing_ok=True)
    words = [word.format(document=document, output=output) for word in shlex.split(command)]
    code, seconds, peak = measured(words, folder)
    figures, said = own_figures(folder)
    seconds, peak = figures.get("seconds", seconds), figures.get("peak_mb", peak)
    if code != 0:
        error = figures.get("error") or " ".join(said[-5:]) or f"exit code {code}"
        return {"tools": 0, "refused": 0, "models": 0, "seconds": seconds, "peak": peak}, error
    path = output if output.exists() else folder / "stdout"
    as_listed(path)
    checked = subprocess.run(
        [OPTIONS.python, TESTS / "check_tools.py", path],
        stdout=subprocess.PIPE,
        check=False,
    )
    result = json.loads(checked.stdout)
    if OPTIONS.keep:
        kept = pathlib.Path(OPTIONS.keep)
        kept.mkdir(parents=True, exist_ok=True)
        name = f"{pathlib.Path(document).stem}-{maker}"
        (kept / f"{name}.json").write_bytes(path.read_bytes())
        (kept / f"{name}-checked.json").write_bytes(checked.stdout)
    row = {"tools": result["tools"], "refused": result["refused_tools"], "models": result["refused_by_models"]}
    return {**row, "seconds": seconds, "peak": peak}, None


def line(document, operations, maker, row):
    share = f"{row['tools']} | {row['refused']} | {row['models']}"
    print(f"| {document} | {operations} | {maker} | {share} | {row['seconds']:.3g} | {row['peak']:.0f} |", flush=True)


def main():
    commands = {"ours": OPTIONS.ours} if OPTIONS.ours else {}
    commands["FastMCP"] = shlex.join([OPTIONS.python, str(HERE / "fastmcp_tools.py")]) + " {document}"
    if OPTIONS.rmcp:
        commands["rmcp-openapi"] = shlex.quote(OPTIONS.rmcp) + " {document}"
    errors = []
    totals = {maker: {"tools": 0, "refused": 0, "models": 0, "seconds": 0, "peak": 0} for maker in commands}
    all_operations = 0
    print("| document | operations | maker | tools | refused | by models | seconds | peak MB |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        for document in OPTIONS.documents:
            name = re.sub(r"\.(json|ya?ml)$", "", pathlib.Path(document).name)
            copy = folder / f"{name}.json"
            with open(copy, "wb") as file:
                subprocess.run([OPTIONS.python, TESTS / "documents.py", document], stdout=file, check=True)
            counted = [OPTIONS.python, TESTS / "documents.py", "--operations", copy]
            operations = int(subprocess.run(counted, stdout=subprocess.PIPE, check=True).stdout)
            all_operations += operations
            for maker, command in commands.items():
                row, error = run(maker, command, copy, folder)
                line(name, operations, maker, row)
                for key in ("tools", "refused", "models", "seconds"):
                    totals[maker][key] += row[key]
                totals[maker]["peak"] = max(totals[maker]["peak"], row["peak"])
                if error:
                    errors.append(f"- {maker}, {name}: {' '.join(error.split())[:400]}")
            copy.unlink()
        for maker in commands:
            line("all", all_operations, maker, totals[maker])
    if errors:
        print("\nErrors, after which a maker makes no tool of a document:\n")
        print("\n".join(errors))


parser = argparse.ArgumentParser()
parser.add_argument("--ours")
parser.add_argument("--rmcp")
parser.add_argument("--python", default=sys.executable)
parser.add_argument("--keep")
parser.add_argument("documents", nargs="+")
OPTIONS = parser.parse_args()
main()
