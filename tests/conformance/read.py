"""Reads resources and gets a prompt with the published MCP clients: URL of the conformance server.
Prints one line of JSON: {"resources": [URI, …], "templates": [URI template, …], "prompts": [name, …], "static": text,
"template": text, "unknown": …, "prompt": text}, with the error for a URI that no resource has as "code: message".
  --client CLIENT     mcp or fastmcp (default: mcp)
  --mode MODE         legacy, auto, or a revision (default: 2026-07-28, pinned)"""

import argparse
import asyncio
import json

import fastmcp
import mcp

parser = argparse.ArgumentParser()
parser.add_argument("url")
parser.add_argument("--client", choices=["mcp", "fastmcp"], default="mcp")
parser.add_argument("--mode", default="2026-07-28")
options = parser.parse_args()

ARGUMENTS = {"arg1": "x", "arg2": "y"}


def listed(value, field):
    # FastMCP returns the items, and the other client the page with them.
    return value if isinstance(value, list) else getattr(value, field)


async def main():
    make = {"mcp": mcp.Client, "fastmcp": fastmcp.Client}[options.client]
    async with make(options.url, mode=options.mode) as client:

        async def read(uri):
            return listed(await client.read_resource(uri), "contents")[0].text

        try:
            unknown = await read("test://nothing")
        except mcp.MCPError as error:
            unknown = f"{error.code}: {error.message}"
        resources = listed(await client.list_resources(), "resources")
        templates = listed(await client.list_resource_templates(), "resource_templates")
        prompts = listed(await client.list_prompts(), "prompts")
        prompt = await client.get_prompt("test_prompt_with_arguments", ARGUMENTS)
        seen = {
            "resources": [str(resource.uri) for resource in resources],
            "templates": [template.uri_template for template in templates],
            "prompts": [prompt.name for prompt in prompts],
            "static": await read("test://static-text"),
            "template": await read("test://template/7/data"),
            "unknown": unknown,
            "prompt": prompt.messages[0].content.text,
        }
    print(json.dumps(seen))


asyncio.run(main())
