"""Invokes AWS's own handler of AgentCore Gateway's events, with the context that AWS's runtime for Python makes.

Reads lines of JSON: {"event": …, "custom": …, "isError": …}, without "custom" for an invocation without a client
context, and with "isError": true for a tool that fails. Prints for each {"tool": …, "arguments": …, "answer": …}, or
{"error": {"class": …, "text": …}} with what the handler raised."""

import json
import sys

from awslambdaric.lambda_context import LambdaContext
from mcp.types import CallToolResult, JSONRPCResponse, TextContent
from mcp_lambda import BedrockAgentCoreGatewayTargetHandler, RequestHandler

SUCCESS = CallToolResult(content=[TextContent(type="text", text='{"sum":3}')], structuredContent={"sum": 3})
FAILURE = CallToolResult(content=[TextContent(type="text", text="The sum is too large")], isError=True)


class Recorder(RequestHandler):
    def __init__(self, result):
        self.result = result

    def handle_request(self, request, context):
        self.request = request
        # As AWS's request handler for servers on stdio writes them.
        result = self.result.model_dump(by_alias=True, mode="json", exclude_none=True)
        return JSONRPCResponse(jsonrpc="2.0", id=request.id, result=result)


for line in sys.stdin:
    invocation = json.loads(line)
    client_context = {"custom": invocation["custom"]} if "custom" in invocation else None
    recorder = Recorder(FAILURE if invocation.get("isError") else SUCCESS)
    try:
        context = LambdaContext("id", client_context, None, 0)
        answer = BedrockAgentCoreGatewayTargetHandler(recorder).handle(invocation["event"], context)
    except Exception as error:
        print(json.dumps({"error": {"class": type(error).__name__, "text": str(error)}}))
        continue
    call = recorder.request
    assert call.method == "tools/call" and set(call.params) == {"name", "arguments"}, call
    print(json.dumps({"tool": call.params["name"], "arguments": call.params["arguments"], "answer": answer}))
