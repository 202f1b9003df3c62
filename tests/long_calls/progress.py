"""Calls a tool with the published MCP client and prints its progress: URL of the server, tool.
Prints one line of JSON: {"progress": [[progress, total, message], …], "times": [ms, …], "result": …}, with the
milliseconds since the call at which each progress came, and the result as it was on the wire.
  --mode MODE         legacy, auto, or a revision (default: 2026-07-28, pinned)
  --arguments JSON    default: {}"""

import argparse
import asyncio
import json
import time

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

parser = argparse.ArgumentParser()
parser.add_argument("url")
parser.add_argument("tool")
parser.add_argument("--mode", default="2026-07-28")
parser.add_argument("--arguments", type=json.loads, default={})
options = parser.parse_args()


async def main():
    seen = {"progress": [], "times": []}

    async def progress(done, total, message):
        seen["progress"].append([done, total, message])
        seen["times"].append(round((time.monotonic() - started) * 1000))

    # Without a limit of its own, so that only the client's is at work.
    http = httpx2.AsyncClient(timeout=None)
    async with Client(streamable_http_client(options.url, http_client=http), mode=options.mode) as mcp:
        started = time.monotonic()
        # The client does not extend its time limit when progress comes.
        result = await mcp.call_tool(options.tool, options.arguments, 45, progress)
        seen["result"] = result.model_dump(by_alias=True, mode="json", exclude_none=True)
    print(json.dumps(seen))


asyncio.run(main())
