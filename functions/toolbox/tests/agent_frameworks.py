"""Lists and calls the tools of a server of MCP with a framework for agents, without a model: agent_frameworks.py
FRAMEWORK URL [CALLS], with calls as a JSON list of [name, arguments]. Prints the names of the tools as the framework
has them, and the result of each call. Fails if the framework made fewer tools than the server lists."""

import asyncio
import json
import sys


async def with_autogen(url, calls):
    from autogen_core import CancellationToken
    from autogen_ext.tools.mcp import StreamableHttpServerParams, mcp_server_tools

    tools = {tool.name: tool for tool in await mcp_server_tools(StreamableHttpServerParams(url=url))}
    for tool in tools.values():
        # What a model would get.
        json.dumps(tool.schema)
    results = []
    for name, arguments in calls:
        # As the framework does with what a model wrote: by the model that it made of the schema.
        content = await tools[name].run_json(arguments, CancellationToken())
        results.append(content[0].text)
    return sorted(tools), results


async def with_semantic_kernel(url, calls):
    from semantic_kernel import Kernel
    from semantic_kernel.connectors.mcp import MCPStreamableHttpPlugin
    from semantic_kernel.functions import KernelArguments

    results = []
    async with MCPStreamableHttpPlugin(name="tools", url=url) as mcp:
        kernel = Kernel()
        plugin = kernel.add_plugin(mcp)
        tools = sorted(plugin.functions)
        json.dumps([it.metadata.parameters and [p.schema_data for p in it.metadata.parameters] for it in plugin])
        for name, arguments in calls:
            result = await kernel.invoke(plugin[name], KernelArguments(**arguments))
            results.append(result.value[0].text)
    return tools, results


async def listed(url):
    """Returns how many tools the server lists on its first page, which is all that these frameworks read."""
    from mcp import ClientSession
    from mcp.client.streamable_http import streamablehttp_client

    async with streamablehttp_client(url) as streams, ClientSession(*streams[:2]) as session:
        await session.initialize()
        return len((await session.list_tools()).tools)


async def main(framework, url, calls="[]"):
    run = globals()["with_" + framework.replace("-", "_")]
    tools, results = await run(url, json.loads(calls))
    if len(tools) != (count := await listed(url)):
        sys.exit(f"{framework} made {len(tools)} tools of {count}: {tools}")
    print(json.dumps({"tools": tools, "results": results}))


asyncio.run(main(*sys.argv[1:]))
