"""Prints the tools that FastMCP makes of an OpenAPI document, as a JSON list of {"name", "description", "inputSchema"}.

fastmcp_tools.py DOCUMENT, in JSON or YAML. Writes {"seconds", "peak_mb"} to standard error: the time from reading the
file to the list, without that of importing FastMCP, and the most memory that the process had. Exits with 1, and an
"error" there, if FastMCP raises one or takes longer than 300 seconds."""

import asyncio
import json
import pathlib
import resource
import signal
import sys
import time

import httpx2
from fastmcp import FastMCP
from fastmcp.client import Client

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests" / "openapi"))
import documents

LIMIT = 300


def too_long(*_):
    raise TimeoutError(f"no list after {LIMIT} seconds")


async def tools(path):
    # The client is one for calls, of which there are none.
    async with httpx2.AsyncClient(base_url="http://127.0.0.1/") as http:
        async with Client(FastMCP.from_openapi(openapi_spec=documents.load(path), client=http)) as client:
            return await client.list_tools()


def main():
    signal.signal(signal.SIGALRM, too_long)
    signal.alarm(LIMIT)
    start, listed, error = time.perf_counter(), None, None
    try:
        listed = asyncio.run(tools(sys.argv[1]))
    # Whatever it is, it is the result.
    except BaseException as raised:
        error = f"{type(raised).__name__}: {raised}"
    signal.alarm(0)
    figures = {
        "seconds": round(time.perf_counter() - start, 3),
        "peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6, 1),
    }
    if error is not None:
        print(json.dumps({**figures, "error": error}), file=sys.stderr)
        sys.exit(1)
    wire = [tool.model_dump(by_alias=True, exclude_none=True) for tool in listed]
    keys = ("name", "description", "inputSchema")
    json.dump([{key: tool[key] for key in keys if key in tool} for tool in wire], sys.stdout)
    print(json.dumps(figures), file=sys.stderr)


main()
