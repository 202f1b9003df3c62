"""Calls a slow tool with the published client, which loses patience and asks again by itself.

Argument: the URL of the server. Prints how often it asked and what it got.
"""

import sys

import httpx
import oxp

asked = 0


def count(_):
    global asked
    asked += 1


patience = httpx.Timeout(1.0)
http = oxp.DefaultHttpxClient(event_hooks={"request": [count]}, timeout=patience)
client = oxp.Oxp(base_url=sys.argv[1], bearer_token="any", timeout=patience, http_client=http)
call = {"tool_id": "Effect.Slow", "call_id": "7c1e9a52-7d0b-4a53-8d3f-6f3f0f9d2b10"}
result = client.tools.call(request=call).result
print(asked, result.value)
