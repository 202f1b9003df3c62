"""Calls the toolbox with the published MCP client: URL, API key, mode of the client."""

import asyncio
import sys

import httpx2
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client


async def main(url, key, mode):
    def client(key):
        http = httpx2.AsyncClient(headers={"Authorization": f"Bearer {key}"})
        return Client(streamable_http_client(url, http_client=http), mode=mode)

    async with client(key) as mcp:
        names = [tool.name for tool in (await mcp.list_tools()).tools]
        assert names[0] == "Calculator_Add" and "System_GetTimestamp" in names, names

        result = await mcp.call_tool("Calculator_Add", {"a": 10, "b": 5})
        assert not result.is_error, result
        assert result.structured_content == {"result": 15}, result

        result = await mcp.call_tool("Calculator_Add", {"a": "x"})
        assert result.is_error, result
        assert "- a: Must be a number." in result.content[0].text, result

        result = await mcp.call_tool("Doorbell_Ring", {"doorbell_id": "none"})
        assert result.is_error, result
        assert "Doorbell ID not found" in result.content[0].text, result

        try:
            await mcp.call_tool("Calculator_Ad", {})
        except MCPError as error:
            assert "did you mean Calculator_Add?" in str(error), error
        else:
            raise AssertionError("an unknown tool is an error")

    try:
        async with client("wrong") as mcp:
            await mcp.list_tools()
    except Exception as error:
        # The client does not say which status it got.
        assert "MCPError" in repr(error), repr(error)
    else:
        raise AssertionError("a wrong key is rejected")
    print("ok")


asyncio.run(main(*sys.argv[1:]))
