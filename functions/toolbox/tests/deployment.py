"""Plays CloudFormation and CloudWatch Logs with an emulator of AWS, for the test of a first deployment.

`deploy TEMPLATE STACK NAME=VALUE…` creates the resources that the commands of a first deployment
read, as the expanded template describes them, and prints the variables of the toolbox. `stack
TEMPLATE STACK URL GATEWAY NAME=VALUE…` creates the stack itself, with its parameters and outputs.
`log STACK` takes the lines of standard input into the toolbox's log, and the metrics in them.
`permissions TEMPLATE STACK NAME=VALUE…` prints the actions that CloudFormation's schemas name for the
stack's resources and that the policy on standard input does not allow.
"""

import fnmatch
import io
import json
import pathlib
import re
import subprocess
import sys
import time
import zipfile

import boto3
import cfnlint
from samcli.cli.types import CfnParameterOverridesType

REGION, ACCOUNT = "us-east-1", "123456789012"


class Stack:
    """A template with values of its parameters."""

    def __init__(self, path, name, values):
        script = pathlib.Path(__file__).with_name("sam_transform.py")
        expanded = subprocess.run([sys.executable, script, path], text=True, capture_output=True)
        if expanded.returncode:
            sys.exit(expanded.stderr)
        self.template, self.name = json.loads(expanded.stdout), name
        self.parameters = {}
        for parameter, declared in self.template["Parameters"].items():
            value = str(values.pop(parameter, declared.get("Default")))
            self.parameters[parameter] = value
            allowed = [str(it) for it in declared.get("AllowedValues", [value])]
            pattern = declared.get("AllowedPattern", "")
            if value not in allowed or not re.search(pattern, value):
                sys.exit(f"{parameter} may not be {value}")
        if values:
            sys.exit(f"the template has no parameters {list(values)}")
        for rule in self.template.get("Rules", {}).values():
            for assertion in rule["Assertions"]:
                if not self.value(assertion["Assert"]):
                    sys.exit(assertion["AssertDescription"])

    def exists(self, resource):
        return "Condition" not in resource or self.holds(resource["Condition"])

    def holds(self, condition):
        return self.value(self.template["Conditions"][condition])

    def resources(self, kind):
        """Returns the properties of the resources of a type, by the names that they get."""
        for name, resource in self.template["Resources"].items():
            if resource["Type"] == kind and self.exists(resource):
                yield self.reference(name), self.value(resource["Properties"])

    def reference(self, name):
        """Returns the value of a reference."""
        if name in self.parameters:
            return self.parameters[name]
        pseudo = {"AWS::StackName": self.name, "AWS::Region": REGION, "AWS::AccountId": ACCOUNT,
                  "AWS::Partition": "aws", "AWS::NoValue": None}
        if name in pseudo:
            return pseudo[name]
        return f"{self.name}-{name}-1EXAMPLE"

    def value(self, it):
        """Returns a value without functions and references."""
        if isinstance(it, list):
            return [value for value in map(self.value, it) if value is not None]
        if not isinstance(it, dict):
            return it
        if len(it) != 1:
            return {name: self.value(value) for name, value in it.items() if self.value(value) is not None}
        ((function, of),) = it.items()
        if function == "Ref":
            return self.reference(of)
        if function == "Condition" and isinstance(of, str):
            return self.holds(of)
        if function == "Fn::If":
            return self.value(of[1 if self.holds(of[0]) else 2])
        if function == "Fn::Equals":
            return str(self.value(of[0])) == str(self.value(of[1]))
        if function == "Fn::Not":
            return not self.value(of[0])
        if function in ("Fn::And", "Fn::Or"):
            return (all if function == "Fn::And" else any)(self.value(item) for item in of)
        if function == "Fn::GetAtt" and of == ["Toolbox", "Arn"]:
            return f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:{self.reference('Toolbox')}"
        if function == "Fn::Sub":
            text, names = (of, {}) if isinstance(of, str) else of
            known = {name: self.value(value) for name, value in names.items()}
            found = lambda match: str(known.get(match[1]) or self.reference(match[1].split(".")[0]))
            return re.sub(r"\$\{([^}]+)\}", found, text)
        if function.startswith("Fn::"):
            return "a value that no test reads"
        return {function: self.value(of)}


def given(values):
    """Returns the values of parameters as `sam deploy` reads them."""
    return CfnParameterOverridesType().convert(values, None, None) if values else {}


def client(service):
    return boto3.client(service, region_name=REGION)


def is_missing(ask, **name):
    """Returns true if what a request asks for does not exist yet."""
    try:
        ask(**name)
    except Exception as error:
        if "NotFound" in repr(error):
            return True
        raise
    return False


def create_secrets(stack):
    secrets = client("secretsmanager")
    for _, secret in stack.resources("AWS::SecretsManager::Secret"):
        if is_missing(secrets.describe_secret, SecretId=secret["Name"]):
            value = secrets.get_random_password(**secret["GenerateSecretString"])["RandomPassword"]
            secrets.create_secret(Name=secret["Name"], SecretString=value)


def create_function(stack):
    """Creates the toolbox, or updates it; returns its variables."""
    lambdas, function = client("lambda"), stack.reference("Toolbox")
    properties = dict(stack.resources("AWS::Lambda::Function"))[function]
    variables = properties["Environment"]["Variables"]
    archive = io.BytesIO()
    zipfile.ZipFile(archive, "w").close()
    settings = {"Runtime": properties["Runtime"], "Timeout": int(properties["Timeout"]),
                "MemorySize": int(properties["MemorySize"]), "Environment": {"Variables": variables}}
    role = stack.reference("ToolboxRole")
    if is_missing(lambdas.get_function, FunctionName=function):
        arn = client("iam").create_role(RoleName=role, AssumeRolePolicyDocument="{}")["Role"]["Arn"]
        lambdas.create_function(FunctionName=function, Role=arn, Handler="bootstrap",
                                Code={"ZipFile": archive.getvalue()}, **settings)
    else:
        lambdas.update_function_configuration(FunctionName=function, **settings)
    return variables


def create_stack(path, name, url, gateway, *values):
    stack = Stack(path, name, given(values))
    known = {"ToolboxUrl": url, "GatewayUrl": gateway}
    outputs = {name: {"Value": known.get(name) or stack.value(output["Value"])}
               for name, output in stack.template["Outputs"].items() if stack.exists(output)}
    body = {"Parameters": stack.template["Parameters"], "Outputs": outputs,
            "Resources": {"Queue": {"Type": "AWS::SQS::Queue"}}}
    formation = client("cloudformation")
    is_new = stack.name not in [it["StackName"] for it in formation.describe_stacks()["Stacks"]]
    values = [{"ParameterKey": key, "ParameterValue": it} for key, it in stack.parameters.items()]
    (formation.create_stack if is_new else formation.update_stack)(
        StackName=stack.name, TemplateBody=json.dumps(body), Parameters=values)


def deploy(path, name, *values):
    stack = Stack(path, name, given(values))
    logs, tables, watch = client("logs"), client("dynamodb"), client("cloudwatch")
    for group, _ in stack.resources("AWS::Logs::LogGroup"):
        if not logs.describe_log_groups(logGroupNamePrefix=group)["logGroups"]:
            logs.create_log_group(logGroupName=group)
    for table, properties in stack.resources("AWS::DynamoDB::Table"):
        if is_missing(tables.describe_table, TableName=table):
            settings = ["KeySchema", "AttributeDefinitions", "BillingMode"]
            tables.create_table(TableName=table, **{it: properties[it] for it in settings})
    create_secrets(stack)
    for alarm, properties in stack.resources("AWS::CloudWatch::Alarm"):
        properties["Threshold"] = float(properties["Threshold"])
        watch.put_metric_alarm(AlarmName=alarm, **properties)
    print(json.dumps(create_function(stack)))


def log(stack):
    logs, watch, now = client("logs"), client("cloudwatch"), int(time.time() * 1000)
    lines = [line.rstrip("\n") for line in sys.stdin]
    to = {"logGroupName": f"{stack}-ToolboxLog-1EXAMPLE", "logStreamName": str(now)}
    logs.create_log_stream(**to)
    logs.put_log_events(**to, logEvents=[{"timestamp": now, "message": line} for line in lines])
    for fields in [json.loads(line) for line in lines if line.startswith("{")]:
        for directive in fields.get("_aws", {}).get("CloudWatchMetrics", []):
            for names in directive["Dimensions"]:
                of = [{"Name": name, "Value": fields[name]} for name in names]
                data = [{"MetricName": it["Name"], "Value": fields[it["Name"]], "Dimensions": of}
                        for it in directive["Metrics"]]
                watch.put_metric_data(Namespace=directive["Namespace"], MetricData=data)


# Schemas name these for properties that the template does not have.
UNUSED = ["bedrock-mantle:*", "ec2:*", "elasticfilesystem:*", "firehose:*", "kinesis:*", "kms:*", "s3files:*",
          "vpc-lattice:*", "iam:*Group*", "iam:*User*"]


def permissions(path, name, *values):
    types = {it["Type"] for it in stack_resources(Stack(path, name, given(values)))}
    allowed = [action for statement in json.load(sys.stdin)["Statement"] for action in statement["Action"]]
    needed = set()
    for schema in pathlib.Path(cfnlint.__file__).parent.glob("data/schemas/resources/*.json"):
        described = json.loads(schema.read_text())
        if described["typeName"] in types:
            types.remove(described["typeName"])
            handlers = [described["handlers"].get(it) for it in ["create", "read", "update", "delete"]]
            needed.update(action for handler in filter(None, handlers) for action in handler["permissions"])
    if types:
        sys.exit(f"there is no schema of {types}")
    matches = lambda action, patterns: any(fnmatch.fnmatch(action.lower(), it.lower()) for it in patterns)
    print("\n".join(sorted(it for it in needed if not matches(it, allowed + UNUSED))))


def stack_resources(stack):
    return [it for it in stack.template["Resources"].values() if stack.exists(it)]


{"deploy": deploy, "stack": create_stack, "log": log, "permissions": permissions}[sys.argv[1]](*sys.argv[2:])
