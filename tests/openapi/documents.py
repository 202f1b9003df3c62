"""Reads OpenAPI documents in JSON and YAML.

documents.py DOCUMENT prints the document as JSON."""

import json
import re
import sys

import yaml


class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
    """YAML as OpenAPI has it: "Tags MUST be limited to those allowed by YAML's JSON schema ruleset" (OpenAPI
    Specification, section "Format"). PyYAML reads YAML 1.1, in which 2020-09-14 is a date, no and on are booleans,
    and 12:30 is a number."""


Loader.yaml_implicit_resolvers = {}
for tag, pattern, first in [
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("bool", r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    ("int", r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", list("-+0123456789")),
    ("float", r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", list("-+.0123456789")),
]:
    Loader.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(f"^(?:{pattern})$"), first)


def integer(loader, node):
    """PyYAML would read 0123 as an octal number."""
    text = loader.construct_scalar(node)
    return int(text, 0) if text[:2] in ("0o", "0x") else int(text)


Loader.add_constructor("tag:yaml.org,2002:int", integer)


def with_text_keys(value):
    """Codes of responses are keys of JSON, which are strings. A copy: anchors make parts of a YAML tree shared."""
    if isinstance(value, dict):
        return {key if isinstance(key, str) else json.dumps(key): with_text_keys(below) for key, below in value.items()}
    return [with_text_keys(below) for below in value] if isinstance(value, list) else value


def load(path):
    with open(path, encoding="utf-8") as file:
        if path.endswith(".json"):
            return json.load(file)
        return with_text_keys(yaml.load(file, Loader))


if __name__ == "__main__":
    json.dump(load(sys.argv[1]), sys.stdout)
