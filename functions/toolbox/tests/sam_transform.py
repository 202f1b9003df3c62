"""Expands a SAM template into its resources, as a deployment would, and prints the result as JSON.

cfn-lint checks the template as written; some mistakes appear only in the result.
"""

import json
import os
import sys

from samtranslator.translator.transform import transform
from samtranslator.yaml_helper import yaml_parse

os.environ.setdefault("AWS_DEFAULT_REGION", "us-east-1")


class NoPolicies:
    """Replaces the names of managed policies, which would come from IAM."""

    def load(self):
        return {}


with open(sys.argv[1], encoding="utf-8") as file:
    template = yaml_parse(file)
for resource in template["Resources"].values():
    if "CodeUri" in resource.get("Properties", {}):
        # The URL that `sam package` would insert.
        resource["Properties"]["CodeUri"] = "s3://bucket/key"
print(json.dumps(transform(template, {}, NoPolicies()), default=str))
