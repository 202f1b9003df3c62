"""Lists and calls the tools of a server of MCP with a framework for agents, without a model: agent_frameworks.py
FRAMEWORK URL [CALLS], with calls as a JSON list of [name, arguments]. Prints the names of the tools as the framework
has them, and the result of each call. Fails if the framework made fewer tools than the server lists: CAMEL, for one,
skips a tool that it cannot use."""

import asyncio
import json
import os
import sys

# Otherwise they report their use to servers of their own.
for name in ["CREWAI_DISABLE_TELEMETRY", "CREWAI_DISABLE_VERSION_CHECK", "OTEL_SDK_DISABLED"]:
    os.environ[name] = "true"
for name in ["ANONYMIZED_TELEMETRY", "CREWAI_TRACING_ENABLED", "HAYSTACK_TELEMETRY_ENABLED"]:
    os.environ[name] = "false"


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


async def with_crewai(url, calls):
    from crewai.utilities.agent_utils import convert_tools_to_openai_schema
    from crewai.utilities.string_utils import sanitize_tool_name
    from crewai_tools import MCPServerAdapter

    def run():
        with MCPServerAdapter({"url": url, "transport": "streamable-http"}) as tools:
            # What a model would get, and what its calls run.
            schemas, functions, _ = convert_tools_to_openai_schema(list(tools))
            json.dumps(schemas)
            return sorted(functions), [functions[sanitize_tool_name(name)](**arguments) for name, arguments in calls]

    # Its clients have event loops of their own.
    return await asyncio.to_thread(run)


async def with_haystack(url, calls):
    from haystack_integrations.tools.mcp import MCPToolset, StreamableHttpServerInfo

    def run():
        toolset = MCPToolset(StreamableHttpServerInfo(url=url), eager_connect=True)
        tools = {tool.name: tool for tool in toolset}
        json.dumps([tool.tool_spec for tool in tools.values()])
        results = [json.loads(tools[name].invoke(**arguments)) for name, arguments in calls]
        toolset.close()
        return sorted(tools), [result["content"][0]["text"] for result in results]

    return await asyncio.to_thread(run)


async def with_camel(url, calls):
    from camel.utils.mcp_client import MCPClient

    async with MCPClient({"url": url}) as client:
        tools = {tool.get_function_name(): tool for tool in client.get_tools()}
        # Checks the schema of each.
        json.dumps([tool.get_openai_tool_schema() for tool in tools.values()])
        # As its agents do.
        return sorted(tools), [await tools[name].func.async_call(**arguments) for name, arguments in calls]


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
