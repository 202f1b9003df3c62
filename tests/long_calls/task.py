"""Calls a tool as a task of the extension io.modelcontextprotocol/tasks with FastMCP's client, from fastmcp-tasks,
which polls it to the end: URL of the server, tool.
Prints one line of JSON: {"statuses": […], "messages": […], "names": …, "result": …}: the distinct statuses and messages
that the client was told when it asked for the task, in order; whether each of these requests had the header Mcp-Name
(true, false, or null if there were none); and the result as it was on the wire. A task that fails is {"error": "…"}
instead of the result; so is a call that becomes no task.
  --arguments JSON     default: {}
  --transparent        lets the client's call_tool poll, whose caller does not see that there is a task
  --cancel-after MS    asks the server to cancel the task
  --plain              a client without the extension: the tool must answer directly
  --name               adds the header Mcp-Name to tasks/*, which the specification demands and FastMCP 4.1 forgets"""

import argparse
import asyncio
import json

import httpx2
from fastmcp import Client
from fastmcp.client.transports import StreamableHttpTransport

parser = argparse.ArgumentParser()
parser.add_argument("url")
parser.add_argument("tool")
parser.add_argument("--arguments", type=json.loads, default={})
parser.add_argument("--transparent", action="store_true")
parser.add_argument("--cancel-after", type=float)
parser.add_argument("--plain", action="store_true")
parser.add_argument("--name", action="store_true")
options = parser.parse_args()

if not options.plain:
    # Importing it gives every client the extension.
    from fastmcp_tasks import call_tool_task

# Seconds for the call and the task.
TIMEOUT = 20
# What the client sent and got: [{"name": the header, "answer": a task}, …].
polls = []


async def before(request):
    """Adds the header that FastMCP's client forgets."""
    if options.name and request.headers.get("mcp-method", "").startswith("tasks/"):
        request.headers.setdefault("mcp-name", json.loads(request.content)["params"]["taskId"])


async def after(response):
    """Remembers what a poll led to."""
    if response.request.headers.get("mcp-method") == "tasks/get":
        poll = {"name": response.request.headers.get("mcp-name"), "answer": {}}
        polls.append(poll)
        if response.headers.get("content-type", "").startswith("application/json"):
            await response.aread()
            poll["answer"] = response.json().get("result", {})


def http_client(**settings):
    settings["event_hooks"] = {"request": [before], "response": [after]}
    return httpx2.AsyncClient(**settings)


def distinct(values):
    """Returns the values without None and without repetitions."""
    found = []
    for value in values:
        if value is not None and found[-1:] != [value]:
            found.append(value)
    return found


async def call(client):
    """Returns the result; of a completed task, as it was on the wire."""
    if options.plain or options.transparent:
        result = await client.call_tool_mcp(options.tool, options.arguments)
        return result.model_dump(by_alias=True, mode="json", exclude_none=True)
    task = await call_tool_task(client, options.tool, options.arguments, raise_on_error=False)
    if options.cancel_after is not None:
        await asyncio.sleep(options.cancel_after / 1000)
        await task.cancel()
    ended = await task.wait(timeout=TIMEOUT)
    if ended.status != "completed":
        raise RuntimeError(f"{ended.status}: {ended.error or ended.status_message}")
    return ended.result


async def main():
    seen = {}
    transport = StreamableHttpTransport(options.url, httpx_client_factory=http_client)
    async with Client(transport, mode="auto") as client:
        try:
            seen["result"] = await asyncio.wait_for(call(client), TIMEOUT)
        except Exception as error:
            seen["error"] = f"{type(error).__name__}: {error}"
    seen["statuses"] = distinct(poll["answer"].get("status") for poll in polls)
    seen["messages"] = distinct(poll["answer"].get("statusMessage") for poll in polls)
    seen["names"] = all(poll["name"] for poll in polls) if polls else None
    print(json.dumps(seen))


asyncio.run(main())
