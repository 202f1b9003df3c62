"""Calls an MCP server with FastMCP's client, which lets its user sign in as it does by itself: it opens a
browser and listens for the redirect back. URL of the server, user. Prints one line of JSON, as mcp_oauth.py does."""

import argparse
import asyncio
import json
import warnings
import webbrowser

import httpx2
from fastmcp import Client
from fastmcp.client.auth import OAuth

from scripted_browser import browse, query_of


class Browser(webbrowser.BaseBrowser):
    """The user's browser, which signs in and delivers the redirect to the client."""

    def __init__(self, user):
        super().__init__("scripted")
        self.user = user
        self.asked = []
        self.visits = []

    def open(self, url, new=0, autoraise=True):
        query = query_of(url)
        self.asked.append({name: query.get(name) for name in ("client_id", "resource", "scope")})
        self.visits.append(asyncio.create_task(self.visit(url, query["redirect_uri"])))
        return True

    async def visit(self, url, redirect_uri):
        landed = await browse(url, self.user, redirect_uri)
        async with httpx2.AsyncClient(timeout=20) as http:
            for _ in range(50):
                try:
                    await http.get(landed)
                    return
                except httpx2.ConnectError:
                    # The client begins to listen once the browser is open.
                    await asyncio.sleep(0.1)
        raise RuntimeError(f"nothing listens at {redirect_uri}")


async def main(args):
    browser = Browser(args.user)
    webbrowser.register("scripted", None, browser, preferred=True)
    # Without settings, the same as auth="oauth".
    auth = OAuth(client_metadata_url=args.metadata_url, callback_timeout=30)
    async with Client(args.url, auth=auth, mode="auto") as mcp:
        result = await mcp.call_tool(args.tool, {})
    await asyncio.gather(*browser.visits)
    print(json.dumps({"call": {"value": result.structured_content}, "asked": browser.asked}))


parser = argparse.ArgumentParser()
parser.add_argument("url")
parser.add_argument("user")
parser.add_argument("--tool")
parser.add_argument("--metadata-url", metavar="URL", help="document that describes the client")
warnings.filterwarnings("ignore", "Using in-memory token storage")
asyncio.run(asyncio.wait_for(main(parser.parse_args()), 50))
