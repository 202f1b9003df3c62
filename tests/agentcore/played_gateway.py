"""Plays an AgentCore Gateway with a Lambda target, in front of the APIs of AWS at AWS_ENDPOINT_URL.

`played_gateway.py TARGET FUNCTION SCHEMA` reads the list of tools at an S3 URI, serves it as an MCP server, and prints
its URL. It accepts only requests that the account's credentials have signed for AgentCore. A call becomes an invocation
in the format that AWS documents; the result of the call is the answer."""

import base64
import contextlib
import json
import os
import socket
import sys

import boto3
import uvicorn
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.types import CallToolResult, Tool
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Mount

target, function, schema = sys.argv[1:]
region = os.environ["AWS_REGION"]
credentials = boto3.Session().get_credentials()
bucket, _, key = schema.removeprefix("s3://").partition("/")
definitions = json.load(boto3.client("s3", region_name=region).get_object(Bucket=bucket, Key=key)["Body"])
server = Server("gateway")


@server.list_tools()
async def list_tools():
    return [Tool(**{**it, "name": f"{target}___{it['name']}"}) for it in definitions]


@server.call_tool(validate_input=False)
async def call_tool(name, arguments):
    context = {"custom": {
        "bedrockAgentCoreMessageVersion": "1.0",
        "bedrockAgentCoreAwsRequestId": "5f6c0a4e-8b1d-4c0e-9d8b-0c2f5a1e7b90",
        "bedrockAgentCoreMcpMessageId": str(server.request_context.request_id),
        "bedrockAgentCoreGatewayId": "agent-tools-a1b2c3d4e5",
        "bedrockAgentCoreTargetId": "A1B2C3D4E5",
        "bedrockAgentCoreToolName": name,
    }}
    invocation = boto3.client("lambda", region_name=region).invoke(
        FunctionName=function,
        ClientContext=base64.b64encode(json.dumps(context).encode()).decode(),
        Payload=json.dumps(arguments),
    )
    return CallToolResult.model_validate_json(invocation["Payload"].read())


def is_signed(method, url, headers, body):
    """Returns true if the account's credentials have signed this request for AgentCore."""
    scheme, _, parts = headers.get("authorization", "").partition(" ")
    parts = dict(part.strip().split("=", 1) for part in parts.split(",") if "=" in part)
    scope = parts.get("Credential", "").split("/")
    if scheme != "AWS4-HMAC-SHA256" or scope[2:] != [region, "bedrock-agentcore", "aws4_request"]:
        return False
    signed = {name: headers[name] for name in parts["SignedHeaders"].split(";")}
    request = AWSRequest(method, url, headers=signed, data=body)
    request.context["timestamp"] = signed["x-amz-date"]
    signer = SigV4Auth(credentials, "bedrock-agentcore", region)
    text = signer.string_to_sign(request, signer.canonical_request(request))
    return {"host", "x-amz-date"} <= set(signed) and signer.signature(text, request) == parts["Signature"]


class Authorized:
    def __init__(self, app):
        self.app = app

    async def __call__(self, scope, receive, send):
        body, more = b"", True
        while more:
            message = await receive()
            body, more = body + message.get("body", b""), message.get("more_body", False)
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        if not is_signed(scope["method"], f"http://{headers['host']}{scope['path']}", headers, body):
            return await JSONResponse({"message": "Missing Authentication Token"}, 403)(scope, receive, send)
        messages = iter([{"type": "http.request", "body": body}])

        async def again():
            return next(messages, None) or await receive()

        return await self.app(scope, again, send)


sessions = StreamableHTTPSessionManager(server, json_response=True, stateless=True)


@contextlib.asynccontextmanager
async def lifespan(_):
    async with sessions.run():
        yield


app = Starlette(routes=[Mount("", Authorized(sessions.handle_request))], lifespan=lifespan)
listener = socket.create_server(("127.0.0.1", 0))
print(f"http://127.0.0.1:{listener.getsockname()[1]}/mcp", flush=True)
uvicorn.Server(uvicorn.Config(app, log_level="error")).run([listener])
