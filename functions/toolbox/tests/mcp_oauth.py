"""Calls an MCP server with the published client, which registers itself and lets its user sign in: URL of the
server, and user. Prints one line of JSON."""

import argparse
import asyncio
import json

import httpx2
from mcp import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientMetadata

from scripted_browser import browse, query_of

# Nothing listens there: the browser stops at this address.
REDIRECT_URI = "http://127.0.0.1/callback"


class Browser:
    """The browser of a user, with what the client has asked for in it."""

    def __init__(self, user):
        self.user = user
        self.asked = []
        self.landed = None

    async def open(self, url):
        query = query_of(url)
        self.asked.append({name: query.get(name) for name in ("client_id", "resource", "scope")})
        self.landed = query_of(await browse(url, self.user, REDIRECT_URI))

    async def result(self):
        if "code" not in self.landed:
            raise RuntimeError(f"the provider refused: {self.landed}")
        landed = self.landed
        return AuthorizationCodeResult(code=landed["code"], state=landed.get("state"), iss=landed.get("iss"))


class Storage:
    """What the client remembers."""

    tokens = None
    client = None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client):
        self.client = client


async def outcome(mcp, tool, arguments):
    result = await mcp.call_tool(tool, arguments)
    return {"failure": result.content[0].text} if result.is_error else {"value": result.structured_content}


async def main(args):
    browser = Browser(args.user)
    storage = Storage()
    metadata = OAuthClientMetadata(
        client_name="test", redirect_uris=[REDIRECT_URI], token_endpoint_auth_method="none"
    )
    auth = OAuthClientProvider(args.url, metadata, storage, browser.open, browser.result)
    http = httpx2.AsyncClient(auth=auth)
    async with Client(streamable_http_client(args.url, http_client=http), mode=args.mode) as mcp:
        await mcp.list_tools()
        seen = {"call": await outcome(mcp, args.tool, json.loads(args.arguments))}
        seen["scopes"] = storage.tokens.scope
        if args.step_up:
            seen["step_up"] = await outcome(mcp, args.step_up, json.loads(args.arguments))
            seen["step_up_scopes"] = storage.tokens.scope
    print(json.dumps(seen | {"asked": browser.asked}))


parser = argparse.ArgumentParser()
parser.add_argument("url")
parser.add_argument("user")
parser.add_argument("--mode", default="auto", help="auto or legacy")
parser.add_argument("--tool")
parser.add_argument("--arguments", default="{}")
parser.add_argument("--step-up", metavar="TOOL", help="then calls this tool, which needs another scope")
asyncio.run(main(parser.parse_args()))
