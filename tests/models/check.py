"""Checks lists of tools and results of calls with the types of the APIs' own SDKs.

Reads lines of JSON: {"api": …, "tools": …} has a list, {"api": …, "reply": …, "messages": …} a model's reply and the
messages with the results of its calls, and {"request": …, "beta": …} a request that names an MCP server, with
Anthropic's beta header. Prints the number of checked lines."""

import json
import sys
import warnings
from typing import get_args

import botocore.session
from anthropic.types import AnthropicBetaParam, Message, ToolParam, ToolResultBlockParam
from anthropic.types.beta import BetaMCPToolsetParam, BetaRequestMCPServerURLDefinitionParam
from botocore.validate import ParamValidator
from google.genai import types as gemini
from jsonschema import Draft202012Validator
from openai.types.chat import ChatCompletionFunctionToolParam, ChatCompletionMessage, ChatCompletionToolMessageParam
from openai.types.responses import FunctionToolParam, ResponseFunctionToolCall
from openai.types.responses.response_input_item_param import FunctionCallOutput
from openai.types.responses.tool_param import Mcp
from pydantic import TypeAdapter

# Unknown names of types are warnings only.
warnings.simplefilter("error")
aws = botocore.session.Session()
converse = aws.get_service_model("bedrock-runtime", api_version="2023-09-30").operation_model("Converse").input_shape
gateway_target = aws.get_service_model("bedrock-agentcore-control").shape_for("TargetConfiguration")


def exactly(kind, value):
    """Validates a value, all of whose keys the type must know."""
    validated = TypeAdapter(kind).validate_python(value, strict=True)
    assert validated == value, f"{value} is not exactly {kind}: {validated}"


def schema(value):
    Draft202012Validator.check_schema(value)


def bedrock(params, shape=converse):
    report = ParamValidator().validate(params, shape)
    assert not report.has_errors(), report.generate_report()
    # The validator checks types and lengths, but no patterns.


def check_tools(api, tools):
    for tool in tools:
        if api == "openai":
            exactly(ChatCompletionFunctionToolParam, tool)
            schema(tool["function"]["parameters"])
        elif api == "openai-responses":
            exactly(FunctionToolParam, tool)
            schema(tool["parameters"])
        elif api == "anthropic":
            exactly(ToolParam, tool)
            schema(tool["input_schema"])
        elif api == "gemini":
            gemini.Tool.model_validate(tool, strict=False)
        elif api == "bedrock":
            schema(tool["toolSpec"]["inputSchema"]["json"])
        elif api == "agentcore":
            function = "arn:aws:lambda:us-east-1:123456789012:function:toolbox"
            bedrock({"mcp": {"lambda": {"lambdaArn": function, "toolSchema": {"inlinePayload": [tool]}}}}, gateway_target)
        else:
            raise ValueError(api)
    if api == "bedrock" and tools:
        bedrock({"modelId": "m", "toolConfig": {"tools": tools}})


def check_results(api, reply, messages):
    """The ids of the results must be those of the calls, in their order."""
    if api == "openai":
        calls = [call.id for call in ChatCompletionMessage.model_validate(reply).tool_calls]
        for message in messages:
            exactly(ChatCompletionToolMessageParam, message)
        results = [message["tool_call_id"] for message in messages]
    elif api == "openai-responses":
        items = [item for item in reply if item["type"] == "function_call"]
        calls = [ResponseFunctionToolCall.model_validate(item).call_id for item in items]
        for item in messages:
            exactly(FunctionCallOutput, item)
        results = [item["call_id"] for item in messages]
    elif api == "anthropic":
        content = Message.model_validate(reply).content
        calls = [block.id for block in content if block.type == "tool_use"]
        [message] = messages
        assert set(message) == {"role", "content"} and message["role"] == "user", message
        for block in message["content"]:
            exactly(ToolResultBlockParam, block)
        results = [block["tool_use_id"] for block in message["content"]]
    elif api == "gemini":
        parts = gemini.Content.model_validate(reply).parts
        calls = [part.function_call.name for part in parts if part.function_call]
        [message] = messages
        parts = gemini.Content.model_validate(message).parts
        assert message["role"] == "user" and all(part.function_response.response for part in parts)
        results = [part.function_response.name for part in parts]
    elif api == "bedrock":
        [message] = messages
        bedrock({"modelId": "m", "messages": [reply, message]})
        calls = [block["toolUse"]["toolUseId"] for block in reply["content"] if "toolUse" in block]
        results = [block["toolResult"]["toolUseId"] for block in message["content"]]
    else:
        raise ValueError(api)
    assert calls and calls == results, (calls, results)


def check_request(request, beta):
    if "mcp_servers" in request:
        assert set(request) == {"mcp_servers", "tools"} and beta in get_args(get_args(AnthropicBetaParam)[1]), beta
        exactly(list[BetaRequestMCPServerURLDefinitionParam], request["mcp_servers"])
        exactly(list[BetaMCPToolsetParam], request["tools"])
        servers = [server["name"] for server in request["mcp_servers"]]
        assert servers == [toolset["mcp_server_name"] for toolset in request["tools"]], request
    elif "tools" in request:
        assert set(request) == {"tools"}, request
        exactly(list[Mcp], request["tools"])
    else:
        bedrock(request, gateway_target)


count = 0
for line in sys.stdin:
    checked = json.loads(line)
    if "tools" in checked:
        check_tools(checked["api"], checked["tools"])
    elif "request" in checked:
        check_request(**checked)
    else:
        check_results(**checked)
    count += 1
print(count)
