"""Checks a list of tools with the rules that the APIs of models publish for tools.

check_tools.py LIST.json reads a JSON list of {"name", "description", "inputSchema"}, as in the answer to MCP's
tools/list, with the names that models see. check_tools.py --agentcore LIST.json reads a list of AgentCore's own
ToolDefinitions. A list may also be the value of "tools" in an object; "-" reads standard input.

Prints {"tools": N, "refused": [{"name", "rule", "provider"}]} and exits with 1 if "refused" has an element."""

import json
import re
import sys
from collections import Counter

from jsonschema import Draft7Validator, Draft202012Validator

# Anthropic, API reference, Messages > Create a Message > Body > tools > Tool > name: "must match the regex
# ^[a-zA-Z0-9_-]{1,64}$" in the field's error; OpenAI, API reference, Chat > FunctionObject > name: "Must be a-z, A-Z,
# 0-9, or contain underscores and dashes, with a maximum length of 64"; Amazon Bedrock API reference,
# ToolSpecification > name: "Minimum length of 1. Maximum length of 64. Pattern: [a-zA-Z0-9_-]+".
NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
# Vertex AI reference, FunctionDeclaration > name: "Must start with a letter or an underscore."
GEMINI_NAME = re.compile(r"[a-zA-Z_]")
# Clients put a prefix before names that they show to models: Claude Code documentation, MCP > "mcp__<server>__<tool>";
# AgentCore Developer Guide, "Understand how AgentCore Gateway tools are named": "${target_name}___${tool_name}".
LONGEST_NAME = 56

# Claude documentation, Managed Agents > Self-hosted sandboxes: "[The API] rejects […] top-level oneOf, anyOf, and
# allOf, and property names outside letters, digits, underscores, dots, and hyphens (1–64 characters)"; the Messages
# API's error, which Bedrock passes on: "Property keys should match pattern '^[a-zA-Z0-9_.-]{1,64}$'". Nested keys are
# not checked.
KEY = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
# Vertex AI reference, FunctionDeclaration > parameters: "Parameter names must start with a letter or an underscore and
# must only contain chars a-z, A-Z, 0-9, or underscores with a maximum length of 64."
GEMINI_KEY = re.compile(r"[a-zA-Z_]")

# OpenAI's error: "schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level",
# also for functions that are not strict. Anthropic's error: "input_schema does not support oneOf, allOf, or anyOf at
# the top level".
ROOT_UNIONS = ("anyOf", "oneOf", "allOf")
ROOT_OTHERS = ("enum", "not")

# Claude documentation, Managed Agents > Self-hosted sandboxes: "It rejects reference keywords such as $ref anywhere in
# a custom tool's input_schema, so inline the schemas that generators […] factor into $defs." Gemini API reference,
# Schema: its fields have no $ref (parametersJsonSchema takes one). AgentCore API reference, SchemaDefinition: type,
# properties, required, items and description only.
REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef", "$defs", "definitions")
REFERENCES_PROVIDER = "anthropic-managed-agents, gemini-parameters, agentcore"

# OpenAI documentation, Structured model outputs > Supported schemas: "A schema may have […] up to 10 levels of
# nesting", in strict mode; other services only get slower. The root is the first level.
LEVELS = 10
# This project's own limit: models read the schema of every tool.
BYTES = 32 * 1024

# JSON Schema, draft 2020-12, Validation, section 6.1.1.
TYPES = {"null", "boolean", "object", "array", "number", "string", "integer"}

# Keywords whose values are schemas, lists of schemas, and objects of schemas, in drafts 7 and 2020-12.
ONE = (
    "additionalItems",
    "additionalProperties",
    "contains",
    "contentSchema",
    "else",
    "if",
    "items",
    "not",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
)
LISTS = ("allOf", "anyOf", "items", "oneOf", "prefixItems")
MAPS = ("$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties")

META = [
    # Anthropic's error: "JSON schema is invalid. It must match JSON Schema draft 2020-12".
    ("draft 2020-12", "anthropic", Draft202012Validator(Draft202012Validator.META_SCHEMA)),
    # Clients, among them those of OpenAI's API, validate with draft 7, which MCP took for the default before 2020-12.
    ("draft 7", "clients", Draft7Validator(Draft7Validator.META_SCHEMA)),
]


def children(schema):
    """The schemas directly below one, with their places. Keys of "properties" are names, not keywords."""
    for keyword in ONE:
        if isinstance(schema.get(keyword), dict):
            yield keyword, schema[keyword]
    for keyword in LISTS:
        if isinstance(schema.get(keyword), list):
            for index, child in enumerate(schema[keyword]):
                yield f"{keyword}/{index}", child
    for keyword in MAPS:
        if isinstance(schema.get(keyword), dict):
            for name, child in schema[keyword].items():
                yield f"{keyword}/{name}", child


def types(schema):
    kind = schema.get("type")
    return kind if isinstance(kind, list) else [kind] if kind is not None else []


def everywhere(schema, place=""):
    """All schemas in a schema, with their places."""
    remaining = [(place, schema)]
    while remaining:
        place, schema = remaining.pop()
        if isinstance(schema, dict):
            yield place, schema
            remaining += [(f"{place}/{below}", child) for below, child in children(schema)]


def levels(schema):
    """The number of objects and arrays, one in the other. A union is no level of its own."""
    deepest, remaining = 0, [(schema, 0)]
    while remaining:
        schema, above = remaining.pop()
        if isinstance(schema, dict):
            nests = {"object", "array"} & set(map(str, types(schema))) or {"properties", "items"} & set(schema)
            level = above + bool(nests)
            deepest = max(deepest, level)
            remaining += [(child, level) for _, child in children(schema)]
    return deepest


def exact(value):
    """A text that two JSON values share if they are equal: 1 is 1.0, but true is not 1."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(key)}:{exact(value[key])}" for key in sorted(value)) + "}"
    return "[" + ",".join(map(exact, value)) + "]" if isinstance(value, list) else json.dumps(value)


def repeated(values):
    """A value that is more than once in a list."""
    return next((value for value, count in Counter(map(exact, values)).items() if count > 1), None)


def broken(tool, names):
    """The rules that a tool breaks, with the APIs that have them."""
    name, description, schema = tool.get("name"), tool.get("description"), tool.get("inputSchema")
    if not isinstance(name, str) or not NAME.fullmatch(name):
        yield f"the name must match ^{NAME.pattern}$", "anthropic, openai, bedrock"
    elif not GEMINI_NAME.match(name):
        yield "the name must start with a letter or an underscore", "gemini"
    if isinstance(name, str) and len(name) > LONGEST_NAME:
        yield f"the name must leave room for clients' prefixes: at most {LONGEST_NAME} characters", "project"
    # Anthropic's error: "tools: Tool names must be unique." Gemini's: "Duplicate function declaration found".
    if names[name] > 1:
        yield "names must be unique", "anthropic, gemini, bedrock"
    # Amazon Bedrock API reference, ToolSpecification > description: "Minimum length of 1"; AgentCore API reference,
    # ToolDefinition > description: "Required: Yes"; Gemini API reference, FunctionDeclaration > description:
    # "Required."
    if not isinstance(description, str) or not description.strip():
        yield "the description must not be empty", "bedrock, gemini, agentcore"
    if not isinstance(schema, dict):
        yield "inputSchema must be an object", "anthropic, openai, gemini, bedrock"
        return

    # Anthropic, API reference, Messages > InputSchema > type: "object"; Model Context Protocol schema, Tool >
    # inputSchema > type: "object"; OpenAI's error above.
    if schema.get("type") != "object":
        yield 'the root must have "type": "object"', "anthropic, openai, bedrock"
    for keyword in ROOT_UNIONS:
        if keyword in schema:
            yield f"the root must not have {keyword}", "anthropic, openai, bedrock"
    for keyword in ROOT_OTHERS:
        if keyword in schema:
            yield f"the root must not have {keyword}", "openai"
    # OpenAI's error, also for functions that are not strict: "In context=(), object schema missing properties".
    if not isinstance(schema.get("properties"), dict):
        yield "the root must have properties", "openai"
    for key in schema["properties"] if isinstance(schema.get("properties"), dict) else ():
        if not KEY.fullmatch(key):
            yield f"the key {key!r} must match ^{KEY.pattern}$", "anthropic, bedrock"
        elif not GEMINI_KEY.match(key):
            yield f"the key {key!r} must start with a letter or an underscore", "gemini"

    for place, below in everywhere(schema):
        where = f"at {place}: " if place else ""
        for keyword in REFERENCES:
            if keyword in below:
                yield f"{where}{keyword} is not allowed", REFERENCES_PROVIDER
        for kind in types(below):
            if not isinstance(kind, str) or kind not in TYPES:
                yield f"{where}{kind!r} is no type", "anthropic, openai, gemini, bedrock"
        # OpenAI's error, also for functions that are not strict: "array schema missing items"; Gemini's: "items:
        # missing field".
        if "array" in types(below) and not {"items", "prefixItems"} & set(below):
            yield f"{where}an array must have items", "openai, gemini"
        # JSON Schema, draft 2020-12, Validation, section 6.1.2: "Elements in the array SHOULD be unique"; validators in
        # strict modes refuse others.
        if isinstance(below.get("enum"), list) and (value := repeated(below["enum"])) is not None:
            yield f"{where}the enum has {value} twice", "clients"
        # Gemini's error, at every level: "parameters.required[0]: property is not defined".
        if isinstance(below.get("required"), list):
            known = below.get("properties") if isinstance(below.get("properties"), dict) else {}
            for missing in [key for key in below["required"] if key not in known]:
                yield f"{where}the required {missing!r} is no property", "gemini-parameters"

    for draft, provider, validator in META:
        # The first error is enough, and to look for the best one would take long.
        error = next(validator.iter_errors(schema), None)
        if error is not None:
            place = "/".join(map(str, error.absolute_path))
            yield f"not a schema of {draft}: at {place}: {error.message[:200]}", provider
    size = len(json.dumps(schema, ensure_ascii=False, separators=(",", ":")).encode())
    if size > BYTES:
        yield f"the schema has {size} bytes, more than {BYTES}", "project"
    if (depth := levels(schema)) > LEVELS:
        yield f"the schema has {depth} levels, more than {LEVELS}", "openai-strict"


def broken_definition(definition, validator, shape):
    """The rules of AgentCore that a ToolDefinition breaks: the service's own model, as botocore has it."""
    function = "arn:aws:lambda:us-east-1:123456789012:function:toolbox"
    target = {"mcp": {"lambda": {"lambdaArn": function, "toolSchema": {"inlinePayload": [definition]}}}}
    report = validator.validate(target, shape)
    if report.has_errors():
        yield report.generate_report(), "agentcore"
    # The validator does not look at the values of an enum: SchemaType has string, number, object, array, boolean and
    # integer (AgentCore API reference, SchemaDefinition > type).
    remaining = [definition.get("inputSchema"), definition.get("outputSchema")]
    while remaining:
        schema = remaining.pop()
        if isinstance(schema, dict):
            if not isinstance(schema.get("type"), str) or schema["type"] not in TYPES - {"null"}:
                yield f"{schema.get('type')!r} is no SchemaType", "agentcore"
            remaining.append(schema.get("items"))
            if isinstance(schema.get("properties"), dict):
                remaining += schema["properties"].values()
    name = definition.get("name")
    if not isinstance(name, str) or not NAME.fullmatch(name):
        yield f"the name must match ^{NAME.pattern}$", "agentcore"
    if not isinstance(definition.get("description"), str) or not definition["description"].strip():
        yield "the description must not be empty", "agentcore"


def main():
    agentcore = "--agentcore" in sys.argv
    [path] = [argument for argument in sys.argv[1:] if argument != "--agentcore"]
    with sys.stdin if path == "-" else open(path, encoding="utf-8") as file:
        tools = json.load(file)
    if isinstance(tools, dict):
        tools = tools["tools"]
    names = Counter(tool.get("name") for tool in tools)
    refused = []
    if agentcore:
        import botocore.session
        from botocore.validate import ParamValidator

        validator = ParamValidator()
        shape = (
            botocore.session.Session().get_service_model("bedrock-agentcore-control").shape_for("TargetConfiguration")
        )
    for tool in tools:
        found = list(broken_definition(tool, validator, shape) if agentcore else broken(tool, names))
        if agentcore and names[tool.get("name")] > 1:
            found.append(("names must be unique", "agentcore"))
        refused += [{"name": tool.get("name"), "rule": rule, "provider": provider} for rule, provider in found]
    print(json.dumps({"tools": len(tools), "refused": refused}, indent=1))
    sys.exit(1 if refused else 0)


if __name__ == "__main__":
    main()
