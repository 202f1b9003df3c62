"""Calls the toolbox with MCP's Python client 1.x: URL, API key, wrong key, calls as JSON. Prints what
tests/support/src/mcp.rs expects of a peer."""

import asyncio
import json
import sys
from contextlib import asynccontextmanager

from mcp import ClientSession, McpError
from mcp.client.streamable_http import streamablehttp_client


async def main(url, key, wrong_key, calls):
    @asynccontextmanager
    async def session(key):
        headers = {"Authorization": f"Bearer {key}"}
        async with streamablehttp_client(url, headers=headers) as (read, write, _):
            async with ClientSession(read, write) as session:
                await session.initialize()
                yield session

    outcomes = []
    async with session(key) as mcp:
        tools = [tool.name for tool in (await mcp.list_tools()).tools]
        for tool, arguments in json.loads(calls):
            try:
                result = await mcp.call_tool(tool, arguments)
            except McpError as error:
                outcomes.append({"error": str(error)})
                continue
            if result.isError:
                outcomes.append({"failure": result.content[0].text})
            else:
                outcomes.append({"value": result.structuredContent})

    unauthorized = None
    try:
        async with session(wrong_key):
            pass
    except Exception as error:
        unauthorized = repr(error)
    print(json.dumps({"tools": tools, "outcomes": outcomes, "unauthorized": unauthorized}))


asyncio.run(main(*sys.argv[1:]))
