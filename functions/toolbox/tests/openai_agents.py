"""Calls the toolbox with the MCP adapter of OpenAI's Agents SDK, without a model: URL, API key, wrong
key, calls as JSON. Prints what tests/support/src/mcp.rs expects of a peer."""

import asyncio
import json
import sys

from agents.mcp import MCPServerStreamableHttp, MCPUtil


async def main(url, key, wrong_key, calls):
    def server(key):
        params = {"url": url, "headers": {"Authorization": f"Bearer {key}"}}
        return MCPServerStreamableHttp(params)

    outcomes = []
    async with server(key) as mcp:
        # As agents get them, with schemas for OpenAI's strict mode.
        listed = await mcp.list_tools()
        tools = [MCPUtil.to_function_tool(tool, mcp, True).name for tool in listed]
        for tool, arguments in json.loads(calls):
            try:
                result = await mcp.call_tool(tool, arguments)
            except Exception as error:
                outcomes.append({"error": str(error)})
                continue
            if result.isError:
                outcomes.append({"failure": result.content[0].text})
            else:
                outcomes.append({"value": result.structuredContent})

    unauthorized = None
    try:
        async with server(wrong_key):
            pass
    except Exception as error:
        unauthorized = repr(error)
    print(json.dumps({"tools": tools, "outcomes": outcomes, "unauthorized": unauthorized}))


asyncio.run(main(*sys.argv[1:]))
