"""Turns a SAM template into the resources it stands for, as a deployment would, and prints it as JSON.

cfn-lint checks the template as it is written; some of its mistakes show only here.
"""

import json
import os
import sys

from samtranslator.translator.transform import transform
from samtranslator.yaml_helper import yaml_parse

os.environ.setdefault("AWS_DEFAULT_REGION", "us-east-1")


class NoPolicies:
    """The names of managed policies, which would come from IAM."""

    def load(self):
        return {}


with open(sys.argv[1], encoding="utf-8") as file:
    template = yaml_parse(file)
for resource in template["Resources"].values():
    if "CodeUri" in resource["Properties"]:
        # `sam package` puts the code there.
        resource["Properties"]["CodeUri"] = "s3://bucket/key"
print(json.dumps(transform(template, {}, NoPolicies()), default=str))
