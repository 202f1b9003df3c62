"""Speaks MCP with a function by invoking it, as AWS's client for Lambda functions does.

Prints the results of `initialize`, `tools/list`, and of `tools/call` for each line of JSON: {"name": …, "arguments": …}.
A call that ends with an error prints {"error": …}."""

import asyncio
import json
import sys

from mcp import ClientSession, McpError
from mcp_lambda import LambdaFunctionParameters, lambda_function_client


async def main():
    function = LambdaFunctionParameters(function_name="function", region_name="us-east-1")
    async with lambda_function_client(function) as (read, write):
        async with ClientSession(read, write) as session:
            show(await session.initialize())
            show(await session.list_tools())
            for line in sys.stdin:
                call = json.loads(line)
                try:
                    show(await session.call_tool(call["name"], call["arguments"]))
                except McpError as error:
                    print(json.dumps({"error": error.error.message}))


def show(result):
    print(result.model_dump_json(by_alias=True, exclude_none=True))


asyncio.run(main())
