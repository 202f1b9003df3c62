"""Creates an AgentCore Gateway with a Lambda target, at the emulator that AWS_ENDPOINT_URL names.

Reads a JSON list of definitions of tools. Prints what the API refuses or returns otherwise and exits with 1, or prints
the number of definitions that the target has."""

import json
import os
import re
import sys
from itertools import zip_longest

import boto3
from botocore.exceptions import ClientError, ParamValidationError

definitions = json.load(sys.stdin)
api = boto3.client("bedrock-agentcore-control", region_name=os.environ["AWS_REGION"])
role = "arn:aws:iam::123456789012:role/gateway"
function = "arn:aws:lambda:us-east-1:123456789012:function:toolbox"
configuration = {"mcp": {"lambda": {"lambdaArn": function, "toolSchema": {"inlinePayload": definitions}}}}
credentials = [{"credentialProviderType": "GATEWAY_IAM_ROLE"}]


def named(match):
    return f"inlinePayload[{definitions[int(match[1])].get('name')}]"


try:
    gateway = api.create_gateway(name="tools", roleArn=role, protocolType="MCP", authorizerType="AWS_IAM")["gatewayId"]
    target = api.create_gateway_target(
        gatewayIdentifier=gateway,
        name="toolbox",
        targetConfiguration=configuration,
        credentialProviderConfigurations=credentials,
    )["targetId"]
    created = api.get_gateway_target(gatewayIdentifier=gateway, targetId=target)
except (ClientError, ParamValidationError) as error:
    print(re.sub(r"inlinePayload\[(\d+)\]", named, str(error)))
    sys.exit(1)
assert created["credentialProviderConfigurations"] == credentials, created
returned = created["targetConfiguration"]["mcp"]["lambda"]["toolSchema"]["inlinePayload"]
for sent, received in zip_longest(definitions, returned, fillvalue={}):
    if sent != received:
        print(f"{sent.get('name')}: {sent} was returned as {received}")
if definitions != returned:
    sys.exit(1)
print(len(returned))
