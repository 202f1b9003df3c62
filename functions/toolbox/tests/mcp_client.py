"""Calls the toolbox with the published MCP client: URL, API key, wrong key, calls as JSON, mode of the
client. Prints what tests/support/src/mcp.rs expects of a peer."""

import asyncio
import json
import sys

import httpx2
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client


async def main(url, key, wrong_key, calls, mode):
    def client(key):
        http = httpx2.AsyncClient(headers={"Authorization": f"Bearer {key}"})
        return Client(streamable_http_client(url, http_client=http), mode=mode)

    outcomes = []
    async with client(key) as mcp:
        tools = [tool.name for tool in (await mcp.list_tools()).tools]
        for tool, arguments in json.loads(calls):
            try:
                result = await mcp.call_tool(tool, arguments)
            except MCPError as error:
                outcomes.append({"error": str(error)})
                continue
            if result.is_error:
                outcomes.append({"failure": result.content[0].text})
            else:
                outcomes.append({"value": result.structured_content})

    unauthorized = None
    try:
        async with client(wrong_key) as mcp:
            await mcp.list_tools()
    except Exception as error:
        unauthorized = repr(error)
    print(json.dumps({"tools": tools, "outcomes": outcomes, "unauthorized": unauthorized}))


asyncio.run(main(*sys.argv[1:]))
