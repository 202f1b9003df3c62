"""Checks a request of docs/clients.md with the types of the SDK of the API that it is for.

Its argument is the request. One of OpenAI's Responses API has "tools"; any other is the configuration of a gateway's
target. Exits with 1 if it has a field or a value that the types do not know."""

import json
import sys
import warnings

import botocore.session
from botocore.validate import ParamValidator
from openai.types.responses.tool_param import Mcp
from pydantic import TypeAdapter

# Unknown names of types are warnings only.
warnings.simplefilter("error")
request = json.loads(sys.argv[1])
if "tools" in request:
    assert set(request) == {"tools"}, request
    validated = TypeAdapter(list[Mcp]).validate_python(request["tools"], strict=True)
    assert validated == request["tools"], f"{request} is not exactly {validated}"
else:
    api = botocore.session.Session().get_service_model("bedrock-agentcore-control")
    report = ParamValidator().validate(request, api.shape_for("TargetConfiguration"))
    assert not report.has_errors(), report.generate_report()
