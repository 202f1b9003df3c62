"""Calls a tool with the published MCP client, and calls it again while it fails: URL of the server, tool.
Prints one line of JSON: {"failed": N, "result": …}, with the number of calls that failed.
  --arguments JSON"""

import argparse
import asyncio
import json

from mcp import Client

parser = argparse.ArgumentParser()
parser.add_argument("url")
parser.add_argument("tool")
parser.add_argument("--arguments", type=json.loads)
options = parser.parse_args()


async def main():
    failed = 0
    async with Client(options.url) as mcp:
        while True:
            try:
                result = await mcp.call_tool(options.tool, options.arguments)
                break
            except Exception:
                failed += 1
                if failed == 3:
                    raise
    result = result.model_dump(by_alias=True, mode="json", exclude_none=True)
    print(json.dumps({"failed": failed, "result": result}))


asyncio.run(main())
