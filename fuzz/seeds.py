"""Makes the initial corpora of the fuzz targets from the repository's events, tool lists and documents."""
import hashlib
import json
import pathlib
import shutil

ROOT = pathlib.Path(__file__).resolve().parent.parent
EVENTS = ROOT / "events"


def events():
    """Yields the folder and the text of every event."""
    for path in sorted(EVENTS.rglob("*.json")):
        if not path.name.endswith((".expected.json", ".client-context.json")):
            yield path.parent.name, path.read_text()


def expected():
    """Yields the body of every expected response."""
    for path in sorted(EVENTS.rglob("*.expected.json")):
        yield json.loads(path.read_text()).get("body")


def calls():
    """Yields the paths and the bodies of calls of the targets' own tools."""
    secrets = [{"id": "K", "value": "v"}]
    context = {"user_id": "u", "authorization": [{"id": "google", "token": "t"}], "secrets": secrets}
    yield "/tools/call", {"tool_id": "Fuzz.Dynamic@1", "call_id": "c", "trace_id": "t", "input": {"a": [1, 1.5, None, "é"]}, "context": context}
    for length in (0, 3, 8, 16, 36):
        text = "0123456789abcdefghijklmnopqrstuvwxyz"[:length]
        # A tool gets only the tokens and secrets that it names.
        for tool, provider, secret in (("Fuzz.Dynamic@1", text, text), ("Gmail.GetEmails", "google", text), ("SMS.Send", text, "TWILIO_API_KEY")):
            context = {"user_id": text, "authorization": [{"id": provider, "token": text}], "secrets": [{"id": secret, "value": text}]}
            yield "/tools/call", {"tool_id": tool, "call_id": text, "trace_id": text, "input": {text: text}, "context": context}
        yield "/opentool/call", {"jsonrpc": "2.0", "method": "Fuzz_Dynamic", "params": {"a": [1, 1.5, None]}, "id": text}
        params = {"name": "Fuzz_Dynamic", "arguments": {"a": [1, 1.5]}, "_meta": {"lambda-tools/call-id": text}}
        yield "/mcp", {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    for schema in ("urn:oxp:1.0", "otc://1.0"):
        yield "/tools/call", {"$schema": schema, "request": {"tool_id": "Fuzz.Many", "input": {"kind": {"special": {"level": 3}}, "numbers": [1]}}}
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}}}
    answers = {"a": {"action": "accept", "content": {"a": 3}}}
    yield "/mcp", {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "Fuzz_Ask", "arguments": {}, "_meta": meta, "inputResponses": answers}}


def event():
    for folder, text in events():
        try:
            # Without the whitespace, mutations reach more of an event.
            text = json.dumps(json.loads(text), separators=(",", ":"), ensure_ascii=False)
        except ValueError:
            pass
        is_protected = any(word in folder for word in ("authentication", "jwt", "key", "tenants"))
        setting = "k" if is_protected else "s" if "direct" in folder else "o"
        yield (setting + text).encode(errors="replace")
    for path, body in calls():
        headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
        params = body.get("params", {})
        # MCP 2026-07-28 repeats them.
        if version := params.get("_meta", {}).get("io.modelcontextprotocol/protocolVersion"):
            headers |= {"mcp-protocol-version": version, "mcp-method": body["method"], "mcp-name": params["name"]}
        http = {"method": "POST", "path": path}
        fields = {"version": "2.0", "rawPath": path, "rawQueryString": "", "headers": headers, "requestContext": {"http": http}}
        yield b"o" + json.dumps(fields | {"body": json.dumps(body, separators=(",", ":"))}, separators=(",", ":")).encode()


def document():
    for path in sorted((ROOT / "crates/openapi/tests/cases").rglob("*.json")):
        text = json.dumps({name: it for name, it in json.loads(path.read_text()).items() if name != "x-case"}, separators=(",", ":"))
        # A longer one would be cut.
        if len(text) <= 4096:
            yield text.encode()


def schemas(value):
    """Yields every schema in a list of tools."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if name in ("input_schema", "output_schema", "inputSchema", "outputSchema", "parameters") and isinstance(inner, dict):
                yield inner
            yield from schemas(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from schemas(inner)


VALUES = [{}, {"a": 1, "b": 2.5}, {"a": None}, [1, 1.0, 2], "text", 5, -0.0, {"to": "+1", "message": "m"}]

KEYWORDS = [
    {"type": "object", "properties": {"a": {"type": "integer", "minimum": 0, "exclusiveMaximum": 9, "multipleOf": 2}}, "required": ["a"]},
    {"type": "object", "additionalProperties": {"type": ["string", "null"], "minLength": 1, "maxLength": 3}},
    {"type": "array", "items": {"enum": [1, "a", None]}, "minItems": 1, "maxItems": 3, "uniqueItems": True},
    {"prefixItems": [{"type": "number"}, {"const": 2}], "items": False, "contains": {"type": "string"}, "minContains": 1},
    {"oneOf": [{"type": "string"}, {"type": "object", "required": ["x"]}], "not": {"const": "no"}},
    {"anyOf": [{"type": "integer"}, {"type": "array"}], "if": {"minimum": 3}, "then": {"maximum": 5}, "else": {"minimum": 0}},
    {"type": "object", "dependentRequired": {"a": ["b"]}, "dependentSchemas": {"b": {"minProperties": 2}}, "unevaluatedProperties": False,
     "properties": {"a": True, "b": True}, "propertyNames": {"maxLength": 2}, "maxProperties": 3},
    {"allOf": [{"type": "object", "properties": {"a": {"format": "date-time", "type": "string"}}}], "patternProperties": {"^b": {"type": "string"}}},
    {"type": "object", "dependencies": {"a": ["b"]}, "properties": {"e": {"format": "email"}, "u": {"format": "uuid"}, "d": {"format": "duration"}}},
    {"items": [{"type": "integer"}], "additionalItems": False},
    {"type": "string", "contentEncoding": "base64", "contentMediaType": "application/json"},
]


def schema():
    found = {json.dumps(it, sort_keys=True): it for body in expected() for it in schemas(body)}
    for one in list(found.values()) + KEYWORDS:
        for value in VALUES[:3] if one not in KEYWORDS else VALUES:
            yield (json.dumps(one, separators=(",", ":")) + json.dumps(value, separators=(",", ":"))).encode()


def jwt():
    for path in sorted((EVENTS / "jwt").glob("*.json")):
        if path.name.endswith(".expected.json"):
            continue
        headers = json.loads(path.read_text()).get("headers") or {}
        for value in headers.values():
            if isinstance(value, str) and value.count(".") >= 2 and "ey" in value:
                yield b"r" + value.split(" ")[-1].encode()
    yield b"e\x00\x00A"
    yield b"e\x10\x80x\x20\xc0y"
    header = b'{"alg":"HS256","typ":"JWT"}'
    for claims in (b'{"aud":"audience","exp":1696510800}', b'{"aud":["x","audience"],"exp":1696507139.5,"nbf":1696507261,"sub":"s","scope":"a b","scp":["c"]}',
                   b'{"exp":1e300,"aud":"audience","sub":null}', b'{"exp":"1696510800","aud":5}', b'{"aud":"audience","exp":1696507200}'):
        yield b"h" + header + claims
    for header in (b'{"alg":"EdDSA","typ":"at+jwt","kid":"1"}', b'{"alg":"EdDSA"}', b'{"alg":"none"}', b'{"alg":"EdDSA","typ":"JWT","crit":[]}'):
        for claims in (b'{"iss":"https://issuer.example","aud":"https://tools.example/mcp","exp":1696510800,"sub":"s"}',
                       b'{"iss":"https://issuer.example","aud":["audience"],"exp":1696510800,"client_id":"c","scope":"a","typ":"Bearer","nonce":"n"}',
                       b'{"iss":"https://issuer.example","client_id":"client","exp":1696510800,"token_use":"access","nbf":0}',
                       b'{"iss":"https://issuer.example","aud":"https://tools.example","exp":1696510800,"sub":"s","events":{},"response_type":"code","redirect_uri":"x","s_hash":"h"}'):
            yield b"i" + header + claims
    yield b'k{"keys":[{"kty":"OKP","crv":"Ed25519","alg":"EdDSA","use":"sig","kid":"1","x":"6kpsY-KcUgq-9VB7Ey7F-ZVHdq6-vnuSQh7qaRRG0iw"}]}'
    yield b'k{"keys":[{"kty":"EC","crv":"P-256","kid":"1","key_ops":["verify"],"x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"},{"kty":"RSA","n":"AQAB","e":"AQAB"},{"kty":"oct","k":"AA"}]}'


def make(folder, target):
    """Writes the seeds of a target; returns their number."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for seed in target():
        (folder / hashlib.sha256(seed).hexdigest()[:20]).write_bytes(seed)
    return len(list(folder.iterdir()))
