"""Calls a slow tool with the published client, which times out and retries by itself.

Argument: the URL of the server. Prints the number of requests and the value of the call.
"""

import sys

import httpx
import oxp

requests = 0


def count(_):
    global requests
    requests += 1


timeout = httpx.Timeout(1.0)
http = oxp.DefaultHttpxClient(event_hooks={"request": [count]}, timeout=timeout)
client = oxp.Oxp(base_url=sys.argv[1], bearer_token="any", timeout=timeout, http_client=http)
call = {"tool_id": "Effect.Slow", "call_id": "7c1e9a52-7d0b-4a53-8d3f-6f3f0f9d2b10"}
result = client.tools.call(request=call).result
print(requests, result.value)
