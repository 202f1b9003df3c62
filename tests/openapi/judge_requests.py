"""Judges requests by the OpenAPI document that they were made from.

judge_requests.py [--base URL] DOCUMENT REQUESTS.jsonl reads lines of {"operation": "GET /a/{b}", "method", "url",
"headers": [[name, value], …], "body": base64 or null}. Credentials may be anything, but must be where the document
wants them. --base takes the place of the document's servers.

Prints {"requests": N, "valid": N, "invalid": [{"operation", "reason"}, …], "by_hand": {reason: N}} and exits with 1 if
a request is invalid.

openapi-core judges first: parameters and bodies, with its public validators of requests. It is wrong about some valid
requests, so what it refuses is decoded once more, by the rules of the OpenAPI Specification alone, and judged with the
document's schema by openapi-schema-validator; "by_hand" counts those. What openapi-core refuses although it is right
(0.23.1):
- parameters whose schema has a list of types, or is a union with an array in it: it decodes by a single type;
- arrays of a query that are not exploded and whose values contain an encoded comma: it splits after decoding;
- objects of style form: it looks for one value of the parameter's name, where the specification has one per property
  (it takes the object for absent);
- empty strings in a query, although the specification leaves the emptiness of strings to the schema;
- parts of multipart bodies, which it reads as ASCII text: files change, other texts and numbers are refused;
- bodies with a media type like application/scim+json, which it does not read as JSON;
- in 3.1, absent properties that are required but read-only, which a request need not have (Schema Object, readOnly);
- values of a union with a discriminator whose value names no schema of the document: a discriminator is a hint, which
  changes no result of a validation (Discriminator Object);
- null where "nullable" stands beside a union or a reference instead of a type, which 3.0.3 gives no meaning, but all
  authors the same;
- "readOnly" outside of properties, which 3.0 gives no meaning (Schema Object, readOnly);
- empty values of a parameter that has allowEmptyValue.
What it does not look at is judged here always: the URL as a whole (it takes a path that only ends like a template, and
servers of the path before those of the operation), names in the query and in forms that the document does not have,
bodies of operations that have none, and credentials (it knows neither OAuth 2.0 nor schemes in capitals)."""

import base64
import json
import re
import sys
import urllib.parse
import warnings
from collections import Counter
from email.parser import BytesParser
from email.policy import HTTP
from functools import cache

import documents
from jsonschema import Draft202012Validator
from jsonschema.validators import extend
from jsonschema_path import SchemaPath
from openapi_core.datatypes import RequestParameters
from openapi_core.templating.datatypes import TemplateResult
from openapi_core.templating.paths.datatypes import PathOperationServer
from openapi_core.validation.request.exceptions import ParameterValidationError
from openapi_core.validation.request.validators import (
    V30RequestBodyValidator,
    V30RequestParametersValidator,
    V31RequestBodyValidator,
    V31RequestParametersValidator,
)
from openapi_schema_validator import OAS30WriteValidator, OAS31Validator
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012
from werkzeug.datastructures import Headers, ImmutableMultiDict

FORM = "application/x-www-form-urlencoded"


def union(keyword, is_30):
    """A union without discriminators and, in 3.0, with null where "nullable" stands beside it."""
    judged = Draft202012Validator.VALIDATORS[keyword]

    def errors(validator, value, instance, schema):
        if is_30 and instance is None and schema.get("nullable") is True:
            return ()
        return judged(validator, value, instance, schema)

    return errors


def keywords(is_30):
    """The version's own validator, with other unions."""
    unions = {keyword: union(keyword, is_30) for keyword in ("allOf", "anyOf", "oneOf")}
    return extend(OAS30WriteValidator if is_30 else OAS31Validator, unions)


class Invalid(Exception):
    """What is wrong with a request."""


class Document:
    """A document, read once for all requests."""

    def __init__(self, path):
        self.tree = documents.load(path)
        self.spec = SchemaPath.from_dict(self.tree)
        self.is_30 = str(self.tree["openapi"]).startswith("3.0")
        self.keyword = keywords(self.is_30)
        self.registry = Registry().with_resource("", Resource(contents=self.tree, specification=DRAFT202012))
        kinds = (
            (V30RequestParametersValidator, V30RequestBodyValidator)
            if self.is_30
            else (V31RequestParametersValidator, V31RequestBodyValidator)
        )
        # Media types like application/scim+json are JSON as well (RFC 6839, section 3.1).
        deserializers = JsonTypes()
        self.parameters, self.body = [
            kind(self.spec, path_finder_cls=Finder, extra_media_type_deserializers=deserializers) for kind in kinds
        ]
        self.paths = {path: self.resolve(item) for path, item in self.tree["paths"].items()}
        # Paths without variables, which come before others (OpenAPI Specification, Paths Object, "Path Templating
        # Matching").
        self.concrete = {path for path in self.paths if "{" not in path}

    def resolve(self, value):
        """Follows references."""
        for _ in range(100):
            if not isinstance(value, dict) or not isinstance(value.get("$ref"), str):
                return value
            pointer = value["$ref"]
            assert pointer.startswith("#/"), f"{pointer} is in another document"
            value = self.tree
            for token in pointer[2:].split("/"):
                token = urllib.parse.unquote(token).replace("~1", "/").replace("~0", "~")
                value = value[int(token) if isinstance(value, list) else token]
        raise ValueError("references without end")

    def operation(self, name):
        method, _, path = name.partition(" ")
        item = self.paths.get(path)
        operation = self.resolve((item or {}).get(method.lower()))
        if operation is None:
            raise Invalid(f"the document has no operation {name}")
        return method.lower(), path, item, operation

    def merged_parameters(self, item, operation):
        """The operation's parameters, which take the place of the path's with the same name and place."""
        found = {}
        for parameter in [*item.get("parameters", []), *operation.get("parameters", [])]:
            parameter = self.resolve(parameter)
            found[parameter["name"], parameter["in"]] = parameter
        return list(found.values())

    def error(self, schema, value):
        """Why a value does not follow a schema, or nothing. The first reason is enough."""
        if schema is None:
            return None
        # The base of the schema's references is the document.
        validator = self.keyword(
            schema,
            registry=self.registry,
            _resolver=self.registry.resolver(""),
            format_checker=self.keyword.FORMAT_CHECKER,
        )
        for error in validator.iter_errors(value):
            if not self.is_harmless(error):
                return f"{'/'.join(map(str, error.absolute_path))}: {error.message[:300]}"
        return None

    def is_harmless(self, error):
        """Whether a required property is absent that is read-only: only answers must have it. Or whether "readOnly"
        stands where it has no meaning."""
        if error.validator == "readOnly":
            return not (error.absolute_path and isinstance(error.absolute_path[-1], str))
        if self.is_30 or error.validator != "required" or not isinstance(error.instance, dict):
            return False
        properties = error.schema.get("properties", {})
        # One error for each absent property.
        absent = [name for name in error.schema["required"] if error.message.startswith(repr(name))]
        return all(self.resolve(properties.get(name, {})).get("readOnly") for name in absent)

    def kinds(self, schema, seen=()):
        """The types that values of a schema may have. No type at all: any."""
        schema = self.resolve(schema)
        if not isinstance(schema, dict) or id(schema) in seen:
            return set()
        seen = (*seen, id(schema))
        kind = schema.get("type")
        found = set(kind) if isinstance(kind, list) else {kind} if kind else set()
        if self.is_30 and schema.get("nullable"):
            found.add("null")
        for keyword in ("anyOf", "oneOf", "allOf"):
            for below in schema.get(keyword, []):
                found |= self.kinds(below, seen)
        if not kind:
            found |= {"object"} & ({"object"} if {"properties", "additionalProperties"} & set(schema) else set())
            found |= {"array"} if "items" in schema else set()
        return found

    def properties(self, schema, seen=()):
        """The properties of a schema for objects and whether it allows others, with those of all its parts."""
        schema = self.resolve(schema)
        if not isinstance(schema, dict) or id(schema) in seen:
            return {}, False
        seen = (*seen, id(schema))
        known, others = dict(schema.get("properties", {})), False
        if schema.get("additionalProperties") or schema.get("patternProperties"):
            others = True
        # An object of no known properties is any object.
        if not known and self.kinds(schema) == {"object"} and schema.get("additionalProperties", True):
            others = True
        for keyword in ("allOf", "anyOf", "oneOf"):
            for below in schema.get(keyword, []):
                more, more_others = self.properties(below, seen)
                known.update({name: part for name, part in more.items() if name not in known})
                others = others or more_others
        return known, others

    def items(self, schema):
        """The schema of an array's values."""
        schema = self.resolve(schema)
        if "items" in schema:
            return schema["items"]
        for keyword in ("anyOf", "oneOf", "allOf"):
            for below in schema.get(keyword, []):
                if "array" in self.kinds(below):
                    return self.items(below)
        return {}

    def primitive(self, schema, text):
        """A text as a value of a schema: the first of the values that it may stand for that the schema allows."""
        kinds = self.kinds(schema)
        values = [text] if "string" in kinds or not kinds else []
        if text in ("true", "false") and "boolean" in kinds | {"boolean"} - kinds:
            values.append(text == "true")
        if kinds & {"integer", "number"} or not kinds:
            for kind in (int, float):
                try:
                    values.append(kind(text))
                except ValueError:
                    pass
        if text in ("", "null") and "null" in kinds:
            values.append(None)
        # The specification does not say how an object in a list is written in a query; those who do say JSON.
        if text.startswith(("{", "[")) and kinds & {"object", "array"}:
            try:
                values.append(json.loads(text))
            except ValueError:
                pass
        for value in values:
            if self.error(schema, value) is None:
                return value
        return values[0] if values else text


class JsonTypes(dict):
    """Readers of media types that openapi-core does not know."""

    def __contains__(self, media_type):
        return media_type.endswith(("+json", "/json"))

    def __getitem__(self, media_type):
        return lambda value, **_: json.loads(value)


class Finder:
    """Gives openapi-core the operation that the request names: judge_url compares it with the URL."""

    def __init__(self, spec, base_url=None):
        # Looked up by "/", a path with a "#" would be taken apart, and nothing of it be judged.
        self.paths = dict((spec / "paths").str_items())

    def find(self, method, name):
        path = self.paths[name]
        assert method in path, f"{method} {name}"
        return PathOperationServer(path, path / method, None, TemplateResult(name, {}), TemplateResult("", {}))


class Request:
    """A request as openapi-core's protocol has it."""

    host_url = ""

    def __init__(self, line):
        self.method = line["method"].lower()
        self.url = urllib.parse.urlsplit(line["url"])
        self.headers = Headers([(name, value) for name, value in line["headers"]])
        self.body = base64.b64decode(line["body"], validate=True) if line.get("body") is not None else b""
        # The boundary of parts has capitals.
        self.content_type = self.headers.get("Content-Type", "")
        self.pairs = urllib.parse.parse_qsl(self.url.query, keep_blank_values=True, errors="strict")
        # Values before decoding: a comma that is encoded separates nothing.
        self.raw = [
            (urllib.parse.unquote_plus(name), value)
            for name, _, value in (pair.partition("=") for pair in self.url.query.split("&") if pair)
        ]
        self.cookies = [
            tuple(pair.strip().split("=", 1)) for pair in self.headers.get("Cookie", "").split(";") if "=" in pair
        ]

    @property
    def path(self):
        return self.path_pattern


@cache
def expression(template, allowed="[^/?#]+"):
    """An expression for the URLs of a template."""
    parts = re.split(r"\{([^{}]*)\}", template)
    # A name may have characters that groups may not.
    return re.compile(
        "".join(re.escape(part) if index % 2 == 0 else f"({allowed})" for index, part in enumerate(parts))
    )


def judge_url(document, base, request, path, item, operation):
    """The values of the path's variables, decoded."""
    # The most specific list of servers counts, and "/" if there is none (OpenAPI Specification, Operation Object).
    servers = operation.get("servers") or item.get("servers") or document.tree.get("servers") or [{"url": "/"}]
    if base is not None:
        servers = [{"url": base}]
    scheme_and_host = f"{request.url.scheme}://{request.url.netloc}"
    # Some documents tell operations of one URL apart by a query or a fragment in their paths. The first is sent.
    path = path.partition("#")[0]
    path, _, fixed = path.partition("?")
    for pair in urllib.parse.parse_qsl(fixed, keep_blank_values=True):
        if pair not in request.pairs:
            raise Invalid(f"the query must have {'='.join(pair)}")
    names = re.findall(r"\{([^{}]*)\}", path)
    for server in servers:
        prefix = server["url"].rstrip("/")
        # A relative URL is one below that of the document, wherever that is.
        whole = scheme_and_host + request.url.path if "://" in prefix else request.url.path
        variables = server.get("variables", {})
        match = re.fullmatch(expression(prefix, "[^?#]*?").pattern + expression(path).pattern, whole)
        if match is None:
            continue
        groups = match.groups()
        places = re.findall(r"\{([^{}]*)\}", prefix)
        for name, value in zip(places, groups):
            allowed = variables.get(name, {}).get("enum")
            if allowed is not None and value not in allowed:
                raise Invalid(f"{value!r} is no value of the server's {name}")
        values = [urllib.parse.unquote(value, errors="strict") for value in groups[len(places) :]]
        if names:
            for concrete in document.concrete:
                if (
                    whole.endswith(concrete)
                    and re.fullmatch(expression(prefix, "[^?#]*?").pattern + re.escape(concrete), whole)
                    and request.method in document.paths[concrete]
                ):
                    raise Invalid(f"the URL is that of {concrete}")
        return dict(zip(names, values))
    raise Invalid(f"{scheme_and_host}{request.url.path} is no URL of {path} at {[server['url'] for server in servers]}")


def judge_credentials(document, request, operation):
    requirements = operation.get("security", document.tree.get("security"))
    if not requirements:
        return
    schemes = document.tree.get("components", {}).get("securitySchemes", {})
    missing = []
    for requirement in requirements:
        absent = [name for name in requirement if not has_credentials(document.resolve(schemes.get(name)), request)]
        if not absent:
            return
        missing.append(" and ".join(absent))
    raise Invalid(f"no credentials: {' or '.join(missing)}")


def has_credentials(scheme, request):
    if scheme is None or scheme["type"] == "mutualTLS":
        return True
    if scheme["type"] == "apiKey":
        place = {"header": request.headers, "query": dict(request.pairs), "cookie": dict(request.cookies)}[scheme["in"]]
        return bool(place.get(scheme["name"]))
    # RFC 6750 for OAuth 2.0 and OpenID Connect.
    wanted = scheme.get("scheme", "bearer").lower()
    kind, _, credentials = request.headers.get("Authorization", "").partition(" ")
    return kind.lower() == wanted and bool(credentials)


def judge_query_names(document, request, path, operation, parameters):
    fixed = urllib.parse.parse_qsl(path.partition("#")[0].partition("?")[2], keep_blank_values=True)
    known, others, prefixes = {name for name, _ in fixed}, False, []
    for parameter in parameters:
        if parameter["in"] != "query":
            continue
        schema, style = parameter.get("schema", {}), parameter.get("style", "form")
        if "object" in document.kinds(schema) and style == "deepObject":
            prefixes.append(parameter["name"] + "[")
        elif "object" in document.kinds(schema) and style == "form" and parameter.get("explode", True):
            names, more = document.properties(schema)
            known |= set(names)
            others = others or more
        known.add(parameter["name"])
    for requirement in operation.get("security", document.tree.get("security")) or []:
        for name in requirement:
            scheme = document.resolve(document.tree.get("components", {}).get("securitySchemes", {}).get(name)) or {}
            if scheme.get("in") == "query":
                known.add(scheme["name"])
    for name, _ in request.pairs:
        if name not in known and not others and not name.startswith(tuple(prefixes)):
            raise Invalid(f"the query has {name!r}, which the operation has not")


def decoded(document, request, parameter):
    """The values that a parameter may have, by its style; KeyError if it is absent. OpenAPI Specification, Parameter
    Object, "Style Values"."""
    name, place, schema = parameter["name"], parameter["in"], parameter.get("schema", {})
    kinds = document.kinds(schema)
    if place == "query":
        texts, raw = (
            [value for key, value in request.pairs if key == name],
            [value for key, value in request.raw if key == name],
        )
    elif place == "header":
        texts = raw = request.headers.getlist(name)
    elif place == "cookie":
        texts = raw = [value for key, value in request.cookies if key == name]
    else:
        texts = raw = [request.parameters.path[name]] if name in request.parameters.path else []
    if "content" in parameter:
        [(media_type, content)] = parameter["content"].items()
        if not texts:
            raise KeyError(name)
        return content.get("schema"), [json.loads(texts[0]) if "json" in media_type else texts[0]]
    style = parameter.get("style", "form" if place in ("query", "cookie") else "simple")
    explode = parameter.get("explode", style == "form")
    values = []
    if "object" in kinds and place == "query":
        properties, others = document.properties(schema)
        if style == "deepObject":
            pairs = [
                (key[len(name) + 1 : -1], value)
                for key, value in request.pairs
                if key.startswith(name + "[") and key.endswith("]")
            ]
        elif explode:
            pairs = [(key, value) for key, value in request.pairs if key in properties or others]
        else:
            parts = raw[0].split(",") if raw else []
            pairs = list(zip(map(urllib.parse.unquote_plus, parts[::2]), map(urllib.parse.unquote_plus, parts[1::2])))
        if pairs:
            grouped = {}
            for key, value in pairs:
                grouped.setdefault(key.removesuffix("[]").split("][")[0] if style == "deepObject" else key, []).append(
                    value
                )
            values.append({key: fields(document, properties.get(key, {}), below) for key, below in grouped.items()})
    if not texts and not values:
        raise KeyError(name)
    if texts and "array" in kinds:
        items = document.items(schema)
        if style == "form" and explode:
            parts = texts
        elif place == "query":
            separator = {"spaceDelimited": r"\+|%20| ", "pipeDelimited": r"\||%7[Cc]"}.get(style, ",")
            parts = [urllib.parse.unquote_plus(part) for part in re.split(separator, raw[0])] if raw[0] else []
        else:
            parts = [part.strip() for part in ",".join(texts).split(",")]
        values.append([document.primitive(items, part) for part in parts])
    if len(texts) == 1:
        values.append(document.primitive(schema, texts[0]))
    return schema, values


def fields(document, schema, texts):
    """The value of a field that was sent once or more."""
    if "array" in document.kinds(schema):
        values = [document.primitive(document.items(schema), text) for text in texts]
        if document.error(schema, values) is None or len(texts) > 1:
            return values
    if len(texts) > 1:
        raise Invalid("a field that is no list is there more than once")
    return document.primitive(schema, texts[0])


def judge_parameter(document, request, parameter):
    """By hand. Returns why the parameter is wrong, or nothing."""
    try:
        schema, values = decoded(document, request, parameter)
    except KeyError:
        # A header that is a credential, or that describes the body, is no parameter (Parameter Object, "name").
        ignored = parameter["in"] == "header" and parameter["name"].lower() in (
            "accept",
            "content-type",
            "authorization",
        )
        return "it is required" if parameter.get("required") and not ignored else None
    if parameter.get("allowEmptyValue") and parameter["in"] == "query" and (parameter["name"], "") in request.pairs:
        return None
    errors = [document.error(schema, value) for value in values]
    return None if None in errors or not errors else errors[0]


def judge_parameters(document, request, parameters, by_hand):
    doubtful = None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            errors = list(document.parameters.iter_errors(request))
        if all(isinstance(error, ParameterValidationError) and hasattr(error, "name") for error in errors):
            doubtful = {(error.name, error.location): str(error.__cause__ or error) for error in errors}
    # It does not always refuse what it cannot read with an error of its own.
    except Exception as error:
        errors = [error]
    for parameter in parameters:
        key = parameter["name"], parameter["in"]
        # Objects of style form may seem to be absent.
        is_object = parameter["in"] == "query" and "object" in document.kinds(parameter.get("schema", {}))
        if doubtful is None or key in doubtful or is_object:
            reason = judge_parameter(document, request, parameter)
            if reason is not None:
                raise Invalid(f"the {parameter['in']} parameter {parameter['name']!r}: {reason}")
    for error in errors:
        by_hand[f"parameter: {short(error)}"] += 1


def short(error):
    """An error in few words, the same ones for all errors of a kind if it is one of openapi-core's."""
    cause = error.__cause__ or error
    broken = getattr(cause, "schema_errors", None)
    if broken:
        return f"{type(cause).__name__}: {broken[0].validator}"
    named = type(cause).__module__.startswith("openapi_core")
    return type(cause).__name__ if named else f"{type(cause).__name__}: {str(cause)[:100]}"


def media_type(document, request, content):
    """The document's entry for the request's media type: exactly it, or a range (Request Body Object, content)."""
    sent = request.content_type.split(";")[0].strip().lower()
    known = {name.split(";")[0].strip().lower(): value for name, value in content.items()}
    for name in (sent, sent.split("/")[0] + "/*", "*/*"):
        if name in known:
            return sent, document.resolve(known[name])
    raise Invalid(f"the body is {sent!r}, not {' or '.join(content)}")


def parts_of(request):
    """The parts of a multipart body: name, file name, media type and bytes."""
    head = b"Content-Type: " + request.headers["Content-Type"].encode("latin-1") + b"\r\n\r\n"
    message = BytesParser(policy=HTTP).parsebytes(head + request.body)
    if not message.is_multipart() or message.defects:
        raise Invalid(f"the multipart body cannot be read: {message.defects}")
    # The email parser may change ends of lines: bytes are taken from the body itself.
    boundary = message.get_boundary().encode("latin-1")
    pieces = (b"\r\n" + request.body).split(b"\r\n--" + boundary)
    if pieces[-1].strip() != b"--":
        raise Invalid("the multipart body has no end")
    for piece, part in zip(pieces[1:-1], message.iter_parts(), strict=True):
        if part.get_content_disposition() != "form-data":
            raise Invalid("a part is no form-data")
        name = part.get_param("name", header="content-disposition")
        if not isinstance(name, str):
            raise Invalid("a part has no name")
        yield name, part.get_filename(), part.get_content_type(), piece.partition(b"\r\n\r\n")[2]


def multipart(document, request, schema, encoding):
    """A multipart body as a value of a schema. OpenAPI Specification, "Special Considerations for multipart Content":
    objects are JSON, and values of an array are parts of the same name."""
    properties, others = document.properties(schema)
    grouped = {}
    for name, filename, kind, content in parts_of(request):
        base = name if name in properties else re.sub(r"\[\d*\]$", "", name)
        part = properties.get(base)
        if part is None and not others:
            raise Invalid(f"the form has {name!r}, which the operation has not")
        part = {} if part is None else part
        item = document.items(part) if "array" in document.kinds(part) else part
        wanted = encoding.get(base, {}).get("contentType")
        if (
            wanted
            and filename is not None
            and kind not in [one.strip() for one in wanted.split(",")]
            and "*" not in wanted
        ):
            raise Invalid(f"the part {name!r} is {kind}, not {wanted}")
        if filename is not None:
            # Bytes: any text is a value of format binary.
            value = content.decode("latin-1")
        elif kind.endswith("json") or ("object" in document.kinds(item) and content[:1] in b"{["):
            value = json.loads(content)
        elif document.resolve(item).get("format") == "binary":
            value = content.decode("latin-1")
        else:
            value = document.primitive(item, content.decode())
        grouped.setdefault(base, []).append(value)
    found = {}
    for name, values in grouped.items():
        part = properties.get(name, {})
        if "array" in document.kinds(part) and not (len(values) == 1 and document.error(part, values[0]) is None):
            found[name] = values
        elif len(values) > 1:
            raise Invalid(f"the form has {name!r} more than once")
        else:
            found[name] = values[0]
    return found


def form(document, request, schema, encoding):
    """A form as a value of a schema. A property is encoded as a query's parameter of style form, unless "encoding" says
    otherwise (Encoding Object, style)."""
    properties, others = document.properties(schema)
    text = request.body.decode("ascii")
    pairs = urllib.parse.parse_qsl(text, keep_blank_values=True, strict_parsing=bool(text), errors="strict")
    grouped = {}
    for name, value in pairs:
        deep = re.fullmatch(r"([^\[\]]+)\[([^\[\]]+)\]", name)
        if name not in properties and deep and encoding.get(deep[1], {}).get("style") == "deepObject":
            grouped.setdefault(deep[1], {}).setdefault(deep[2], []).append(value)
        elif name not in properties and not others:
            raise Invalid(f"the form has {name!r}, which the operation has not")
        else:
            grouped.setdefault(name, []).append(value)
    found = {}
    for name, texts in grouped.items():
        part = properties.get(name, {})
        if isinstance(texts, list) and len(texts) > 1 and "array" not in document.kinds(part):
            raise Invalid(f"the form has {name!r} more than once")
        if isinstance(texts, dict):
            inner, _ = document.properties(part)
            found[name] = {key: fields(document, inner.get(key, {}), below) for key, below in texts.items()}
        elif "object" in document.kinds(part) and len(texts) == 1 and texts[0][:1] == "{":
            found[name] = json.loads(texts[0])
        elif encoding.get(name, {}).get("explode") is False and len(texts) == 1 and "array" in document.kinds(part):
            found[name] = [document.primitive(document.items(part), text) for text in texts[0].split(",")]
        else:
            found[name] = fields(document, part, texts)
    return found


def judge_body(document, request, operation, by_hand):
    body = document.resolve(operation.get("requestBody"))
    if body is None:
        if request.body:
            raise Invalid("there is a body, which the operation has not")
        return
    if not request.body:
        # An empty form and an empty text are bodies, too, if their media type is there.
        if body.get("required") and not request.content_type:
            raise Invalid("there is no body")
        if not request.content_type:
            return
    sent, entry = media_type(document, request, body["content"])
    schema, encoding = entry.get("schema"), entry.get("encoding", {})
    is_form = sent == FORM or sent.startswith("multipart/")
    reason = None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            reason = next((short(error) for error in document.body.iter_errors(request)), None)
    except Exception as error:
        reason = short(error)
    if reason is None and not is_form:
        return
    try:
        if sent == FORM:
            value = form(document, request, schema or {}, encoding)
        elif sent.startswith("multipart/"):
            value = multipart(document, request, schema or {}, encoding)
        elif sent.endswith("json"):
            value = json.loads(request.body)
        else:
            value = request.body.decode("latin-1" if "octet" in sent else "utf-8")
    except ValueError as error:
        raise Invalid(f"the body is no {sent}: {error}") from error
    error = document.error(schema, value)
    if error is not None:
        raise Invalid(f"the body: {error}")
    if reason is not None:
        by_hand[f"body: {reason}"] += 1


def judge(document, base, line, by_hand):
    method, path, item, operation = document.operation(line["operation"])
    request = Request(line)
    if request.method != method:
        raise Invalid(f"the method is {request.method}")
    request.path_pattern = path
    request.parameters = RequestParameters(
        query=ImmutableMultiDict(request.pairs),
        header=request.headers,
        cookie=ImmutableMultiDict(request.cookies),
        path=judge_url(document, base, request, path, item, operation),
    )
    parameters = document.merged_parameters(item, operation)
    judge_credentials(document, request, operation)
    judge_query_names(document, request, path, operation, parameters)
    judge_parameters(document, request, parameters, by_hand)
    judge_body(document, request, operation, by_hand)


def main():
    arguments, base = sys.argv[1:], None
    if arguments[0] == "--base":
        base, arguments = arguments[1].rstrip("/"), arguments[2:]
    document = Document(arguments[0])
    count, invalid, by_hand = 0, [], Counter()
    with open(arguments[1], encoding="utf-8") as file:
        for text in filter(str.strip, file):
            line = json.loads(text)
            count += 1
            try:
                judge(document, base, line, by_hand)
            except Invalid as error:
                invalid.append({"operation": line["operation"], "reason": str(error)})
            except Exception as error:
                # A judge that fails has not found a request valid.
                invalid.append({"operation": line["operation"], "reason": f"the judge failed: {short(error)}"})
    print(
        json.dumps(
            {
                "requests": count,
                "valid": count - len(invalid),
                "invalid": invalid,
                "by_hand": dict(by_hand.most_common()),
            },
            indent=1,
            ensure_ascii=False,
        )
    )
    sys.exit(1 if invalid else 0)


if __name__ == "__main__":
    main()
