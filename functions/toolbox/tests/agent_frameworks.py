"""Lists and calls the tools of a server of MCP with AutoGen and with Semantic Kernel, without a model: the
framework, URL, calls as JSON. Prints the names of the tools, and the result of each call."""

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


async def main(framework, url, calls):
    run = {"autogen": with_autogen, "semantic-kernel": with_semantic_kernel}[framework]
    tools, results = await run(url, json.loads(calls))
    print(json.dumps({"tools": tools, "results": results}))


asyncio.run(main(*sys.argv[1:]))
