"""Plays a deployment with an emulator of AWS, for the tests that type the commands of a page.

`deploy TEMPLATE STACK URL NAME=VALUE…` creates or updates a stack with those resources of the expanded template that
commands read, and with this URL as the output that has the entry point's. Prints the variables of the toolbox. `log
STACK` takes the lines of standard input into the toolbox's log, and the metrics in them. `permissions TEMPLATE
NAME=VALUE…` prints the actions that CloudFormation's schemas name for a template's resources and that the policy on
standard input does not allow.
"""

import base64
import fnmatch
import json
import pathlib
import re
import subprocess
import sys
import time

import boto3
import cfnlint
from samcli.cli.types import CfnParameterOverridesType

# What the emulator makes of a template, and commands read.
MADE = ["AWS::DynamoDB::Table", "AWS::IAM::Role", "AWS::Lambda::Function", "AWS::Logs::LogGroup", "AWS::SQS::Queue"]
EMPTY_ZIP = base64.b64encode(b"PK\5\6" + bytes(18)).decode()


def client(service):
    return boto3.client(service, region_name="us-east-1")


def expanded(path):
    script = pathlib.Path(__file__).with_name("sam_transform.py")
    template = subprocess.run([sys.executable, script, path], stdout=subprocess.PIPE, check=True)
    return json.loads(template.stdout)


def outputs_of(stack):
    (described,) = client("cloudformation").describe_stacks(StackName=stack)["Stacks"]
    return {it["OutputKey"]: it["OutputValue"] for it in described["Outputs"]}


def create_secrets(resources, stack):
    secrets = client("secretsmanager")
    existing = {it["Name"] for it in secrets.list_secrets()["SecretList"]}
    for secret in [it["Properties"] for it in resources if it["Type"] == "AWS::SecretsManager::Secret"]:
        name = secret["Name"]["Fn::Sub"].replace("${AWS::StackName}", stack)
        if name not in existing:
            value = secrets.get_random_password(**secret["GenerateSecretString"])["RandomPassword"]
            secrets.create_secret(Name=name, SecretString=value)


def add_alarms(resources, outputs):
    """Lets the emulator, which makes no alarms, evaluate which there are and which of them notify an address."""
    for name, alarm in resources.items():
        if alarm["Type"] == "AWS::CloudWatch::Alarm":
            has_address = alarm["Properties"]["AlarmActions"]["Fn::If"][0]
            value = {"Fn::If": [has_address, "arn:aws:sns:us-east-1:123456789012:alarms", "none"]}
            outputs[f"Alarm{name}"] = {"Condition": alarm["Condition"], "Value": value}


def add_rules(template):
    """Lets the emulator, which knows no rules, evaluate them as conditions; returns how many there are."""
    rules = [it["Assert"] for rule in template.pop("Rules", {}).values() for it in rule["Assertions"]]
    for number, rule in enumerate(rules):
        template["Conditions"][f"Rule{number}"] = rule
        template["Outputs"][f"Rule{number}"] = {"Condition": f"Rule{number}", "Value": "holds"}
    return len(rules)


def create_alarms(stack):
    for name, action in outputs_of(stack).items():
        if name.startswith("Alarm"):
            client("cloudwatch").put_metric_alarm(
                AlarmName=f"{stack}-{name.removeprefix('Alarm')}-1EXAMPLE", Namespace=stack, MetricName=name,
                Statistic="Sum", Period=300, EvaluationPeriods=1, Threshold=1,
                ComparisonOperator="GreaterThanOrEqualToThreshold", AlarmActions=[action] * (action != "none"))


def deploy(path, name, url, *values):
    template, formation = expanded(path), client("cloudformation")
    resources = template["Resources"]
    made = {key: it for key, it in resources.items() if it["Type"] in MADE}
    # Of a gateway, nothing but its output is read.
    template["Resources"] = made if "Toolbox" in made else {"Any": {"Type": "AWS::SQS::Queue"}}
    for resource in template["Resources"].values():
        if "Code" in resource.get("Properties", {}):
            # The emulator updates no function whose text in the template is unchanged.
            resource["Properties"].update(Code={"ZipFile": EMPTY_ZIP}, Description=" ".join(values))
    for output in ["ToolboxUrl", "GatewayUrl", "HelloUrl"]:
        if output in template["Outputs"]:
            template["Outputs"][output]["Value"] = url or "none"
    add_alarms(resources, template["Outputs"])
    # As `sam deploy` reads them.
    given = CfnParameterOverridesType().convert(values, None, None) if values else {}
    for key, value in given.items():
        declared = template["Parameters"][key]
        if value not in declared.get("AllowedValues", [value]) or not re.search(declared.get("AllowedPattern", ""), value):
            sys.exit(f"{key} may not be {value}")
    rules = add_rules(template)
    is_new = name not in [it["StackName"] for it in formation.describe_stacks()["Stacks"]]
    (formation.create_stack if is_new else formation.update_stack)(
        StackName=name, TemplateBody=json.dumps(template),
        Parameters=[{"ParameterKey": key, "ParameterValue": it} for key, it in given.items()])
    if sum(output.startswith("Rule") for output in outputs_of(name)) != rules:
        sys.exit("a rule of the template rejects the parameters")
    if "Toolbox" in resources:
        create_secrets(resources.values(), name)
        create_alarms(name)
        function = client("lambda").get_function_configuration(FunctionName=outputs_of(name)["ToolboxArn"])
        print(json.dumps(function["Environment"]["Variables"]))


def log(stack):
    logs, watch, now = client("logs"), client("cloudwatch"), int(time.time() * 1000)
    lines = [line.rstrip("\n") for line in sys.stdin]
    to = {"logGroupName": outputs_of(stack)["ToolboxLogName"], "logStreamName": str(now)}
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


def permissions(path):
    types = {it["Type"] for it in expanded(path)["Resources"].values()}
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


{"deploy": deploy, "log": log, "permissions": permissions}[sys.argv[1]](*sys.argv[2:])
