"""Calls the toolbox with MCP's Python client 1.x: URL, API key."""

import asyncio
import sys

from mcp import ClientSession, McpError
from mcp.client.streamable_http import streamablehttp_client


async def main(url, key):
    headers = {"Authorization": f"Bearer {key}"}
    async with streamablehttp_client(url, headers=headers) as (read, write, _):
        async with ClientSession(read, write) as session:
            initialized = await session.initialize()
            assert initialized.protocolVersion == "2025-11-25", initialized

            names = [tool.name for tool in (await session.list_tools()).tools]
            assert names[0] == "Calculator_Add", names

            result = await session.call_tool("Calculator_Add", {"a": 10, "b": 5})
            assert not result.isError, result
            assert result.structuredContent == {"result": 15}, result

            result = await session.call_tool("Calculator_Add", {"a": "x"})
            assert result.isError, result
            assert "- a: Must be a number." in result.content[0].text, result

            result = await session.call_tool("Doorbell_Ring", {"doorbell_id": "none"})
            assert result.isError, result

            try:
                await session.call_tool("Calculator_Ad", {})
            except McpError as error:
                assert "did you mean Calculator_Add?" in str(error), error
            else:
                raise AssertionError("an unknown tool is an error")

    try:
        async with streamablehttp_client(url, headers={"Authorization": "Bearer wrong"}) as (read, write, _):
            async with ClientSession(read, write) as session:
                await session.initialize()
    except Exception as error:
        assert "401" in repr(error.__dict__) or "401" in repr(error), repr(error)
    else:
        raise AssertionError("a wrong key is rejected")
    print("ok")


asyncio.run(main(*sys.argv[1:]))
