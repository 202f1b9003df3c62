"""Judges requests by the OpenAPI document that they were made from, with openapi-core.

judge_requests.py DOCUMENT REQUESTS.jsonl reads lines of {"operation": "GET /a/{b}", "method", "url", "headers":
[[name, value], …], "body": base64}. Prints {"requests": N, "valid": N, "reasons": {reason: N}}: the reasons why
openapi-core refuses credentials, parameters and bodies. It does not look at the URL before the path's variables, and
not for names in a query that the document does not have: crates/openapi/tests/cases does.

What it refuses although it is right (0.23.1): parameters whose schema has a list of types, or is a union with an array
in it; objects of style form; encoded commas in arrays that are not exploded; empty strings in a query; parts of
multipart bodies that are no text; in 3.1, absent properties that are required but read-only; values of a union with a
discriminator that names no schema; null where "nullable" stands beside a union or a reference."""

import base64
import json
import re
import sys
import urllib.parse
import warnings
from collections import Counter

import documents
from jsonschema_path import SchemaPath
from openapi_core.datatypes import RequestParameters
from openapi_core.templating.datatypes import TemplateResult
from openapi_core.templating.paths.datatypes import PathOperationServer
from openapi_core.validation.request.validators import V30RequestValidator, V31RequestValidator
from werkzeug.datastructures import Headers, ImmutableMultiDict


class JsonTypes(dict):
    """Readers of media types like application/scim+json, which are JSON as well (RFC 6839, section 3.1)."""

    def __contains__(self, media_type):
        return media_type.endswith(("+json", "/json"))

    def __getitem__(self, media_type):
        return lambda value, **_: json.loads(value)


class Finder:
    """Gives openapi-core the operation that the request names, and no server: several may have one URL."""

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
        operation, _, self.path = line["operation"].partition(" ")
        self.method = line["method"].lower()
        assert operation.lower() == self.method
        url = urllib.parse.urlsplit(line["url"])
        headers = Headers(map(tuple, line["headers"]))
        self.body = base64.b64decode(line["body"], validate=True)
        self.content_type = headers.get("Content-Type", "")
        cookies = (pair.strip().split("=", 1) for pair in headers.get("Cookie", "").split(";") if "=" in pair)
        self.parameters = RequestParameters(
            query=ImmutableMultiDict(urllib.parse.parse_qsl(url.query, keep_blank_values=True, errors="strict")),
            header=headers,
            cookie=ImmutableMultiDict(map(tuple, cookies)),
            path=self.variables(url.path),
        )

    def variables(self, path):
        """The values of the path's variables, decoded."""
        parts = re.split(r"\{([^{}]*)\}", self.path.partition("#")[0].partition("?")[0])
        pattern = "".join(re.escape(part) if index % 2 == 0 else "([^/]+)" for index, part in enumerate(parts))
        match = re.search(pattern + "$", path)
        assert match, f"{path} is no URL of {self.path}"
        return dict(zip(parts[1::2], map(urllib.parse.unquote, match.groups())))


def short(error):
    """An error in few words, the same ones for all errors of a kind."""
    cause = error.__cause__ or error
    broken = getattr(cause, "schema_errors", None)
    return f"{type(cause).__name__}: {broken[0].validator if broken else str(cause)[:100]}"


def main(path, requests):
    document = documents.load(path)
    kind = V30RequestValidator if str(document["openapi"]).startswith("3.0") else V31RequestValidator
    validator = kind(SchemaPath.from_dict(document), path_finder_cls=Finder, extra_media_type_deserializers=JsonTypes())
    count, valid, reasons = 0, 0, Counter()
    with open(requests, encoding="utf-8") as file:
        for text in filter(str.strip, file):
            count += 1
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    errors = list(validator.iter_errors(Request(json.loads(text))))
            # It does not always refuse what it cannot read with an error of its own.
            except Exception as error:
                errors = [error]
            reasons.update(map(short, errors))
            valid += not errors
    print(json.dumps({"requests": count, "valid": valid, "reasons": dict(reasons.most_common())}, indent=1))


if __name__ == "__main__":
    main(*sys.argv[1:])
