"""Lists the tools of a server of MCP with a framework for agents, without a model: agent_frameworks.py FRAMEWORK URL.
Fails if the framework made fewer tools than the server lists."""

import asyncio
import json
import sys


async def with_autogen(url):
    from autogen_ext.tools.mcp import StreamableHttpServerParams, mcp_server_tools

    tools = {tool.name: tool for tool in await mcp_server_tools(StreamableHttpServerParams(url=url))}
    for tool in tools.values():
        # What a model would get.
        json.dumps(tool.schema)
    return sorted(tools)


async def with_semantic_kernel(url):
    from semantic_kernel import Kernel
    from semantic_kernel.connectors.mcp import MCPStreamableHttpPlugin

    async with MCPStreamableHttpPlugin(name="tools", url=url) as mcp:
        plugin = Kernel().add_plugin(mcp)
        tools = sorted(plugin.functions)
        json.dumps([it.metadata.parameters and [p.schema_data for p in it.metadata.parameters] for it in plugin])
    return tools


async def listed(url):
    """Returns how many tools the server lists on its first page, which is all that these frameworks read."""
    from mcp import ClientSession
    from mcp.client.streamable_http import streamablehttp_client

    async with streamablehttp_client(url) as streams, ClientSession(*streams[:2]) as session:
        await session.initialize()
        return len((await session.list_tools()).tools)


async def main(framework, url):
    tools = await globals()["with_" + framework.replace("-", "_")](url)
    if len(tools) != (count := await listed(url)):
        sys.exit(f"{framework} made {len(tools)} tools of {count}: {tools}")


asyncio.run(main(*sys.argv[1:]))
