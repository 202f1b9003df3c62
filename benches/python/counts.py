"""Counts instructions with callgrind and compares them with the committed counts."""

import json
import os
import re
import subprocess
import sys

STAGES = {"start": 20} | dict.fromkeys(["decode", "validate", "call", "mcp", "recorded", "replay", "event"], 200)
FILE = "benches/COUNTS.json"
TOLERANCE = 0.05


def instructions(stage, rounds):
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", sys.argv[1], stage, str(rounds)]
    run = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "RUST_BACKTRACE": "0"})
    collected = re.search(r"Collected : (\d+)", run.stderr)
    if run.returncode or not collected:
        sys.exit(f"{' '.join(command)} failed:\n{run.stderr}")
    return int(collected.group(1))


def per_round(stage, rounds):
    return round((instructions(stage, 2 * rounds) - instructions(stage, rounds)) / rounds)


toolchain = subprocess.run(["rustc", "--version"], capture_output=True, text=True, check=True).stdout.strip()
counted = {stage: per_round(stage, rounds) for stage, rounds in STAGES.items()}
if os.environ.get("UPDATE_COUNTS") == "1":
    with open(FILE, "w", encoding="utf-8") as file:
        json.dump({"toolchain": toolchain, "instructions": counted}, file, indent=2)
        file.write("\n")
with open(FILE, encoding="utf-8") as file:
    committed = json.load(file)
worse = []
for stage, limit in committed["instructions"].items():
    change = counted[stage] / limit - 1
    print(f"{stage:10} {counted[stage]:12,} instructions, {change:+.1%} against the committed {limit:,}")
    if change > TOLERANCE:
        worse.append(stage)
if worse:
    sys.exit(f"instructions exceed the committed counts by more than {TOLERANCE:.0%}: {', '.join(worse)}")
