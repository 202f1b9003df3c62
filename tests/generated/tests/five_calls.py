"""Calls five tools of a server with the published MCP client: URL, then a name and its arguments as JSON for each.
Prints the number of tools and the answers as JSON."""

import asyncio
import json
import sys

from mcp import Client


async def main(url, *calls):
    async with Client(url) as mcp:
        tools = (await mcp.list_tools()).tools
        answers = []
        for name, arguments in zip(calls[::2], calls[1::2]):
            result = await mcp.call_tool(name, json.loads(arguments))
            answers.append({"is_error": bool(result.is_error), "text": result.content[0].text})
    print(json.dumps({"tools": [tool.name for tool in tools], "answers": answers}))


asyncio.run(main(*sys.argv[1:]))
