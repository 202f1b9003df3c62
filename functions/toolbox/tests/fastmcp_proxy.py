"""A FastMCP server whose users sign in through FastMCP's OAuthProxy at oidc_provider.mjs, to compare with this
project's servers: python fastmcp_proxy.py ISSUER=URL [NAME=value …]
  PORT         default: a free one
  STORE        memory, or file (default): FastMCP's own default, encrypted files below FASTMCP_HOME
  METADATA     0: it accepts no URLs of metadata documents as client ids
Its tools are Mail_Whose, and Mail_Send, which needs the scope mail.send."""

import json
import socket
import sys
from pathlib import Path
from urllib.parse import urlencode
from urllib.request import urlopen

import uvicorn
from fastmcp import FastMCP
from fastmcp.server.auth import OAuthProxy, require_scopes
from fastmcp.server.auth.providers.jwt import JWTVerifier
from fastmcp.server.dependencies import get_access_token
from key_value.aio.stores.memory import MemoryStore

sys.path.append(str(Path(__file__).with_name("openid")))
from provider_support import SETTINGS, end_with_stdin

issuer = SETTINGS["ISSUER"]
listening = socket.create_server(("127.0.0.1", int(SETTINGS.get("PORT", 0))))
url = f"http://127.0.0.1:{listening.getsockname()[1]}"
with urlopen(f"{issuer}/.well-known/openid-configuration", timeout=20) as response:
    upstream = json.load(response)
urlopen(f"{issuer}/test/redirect_uri?{urlencode({'uri': f'{url}/auth/callback'})}", timeout=20).close()

proxy = OAuthProxy(
    upstream_authorization_endpoint=upstream["authorization_endpoint"],
    upstream_token_endpoint=upstream["token_endpoint"],
    upstream_client_id="toolbox",
    upstream_client_secret="toolbox-secret",
    token_verifier=JWTVerifier(
        jwks_uri=upstream["jwks_uri"],
        issuer=issuer,
        audience=f"{url}/mcp",
        required_scopes=["mail.read"],
    ),
    base_url=url,
    valid_scopes=["mail.read", "mail.send"],
    client_storage=MemoryStore() if SETTINGS.get("STORE") == "memory" else None,
    jwt_signing_key="a-key-of-this-server-0123456789abcdef",
    enable_cimd=SETTINGS.get("METADATA") != "0",
)
mcp = FastMCP("Mail", auth=proxy)


def whose() -> str:
    """Says for whom it runs."""
    return get_access_token().claims["sub"]


mcp.tool(whose, name="Mail_Whose")
mcp.tool(whose, name="Mail_Send", auth=require_scopes("mail.send"))
end_with_stdin()
print(f"Serving FastMCP on {url}", flush=True)
uvicorn.Server(uvicorn.Config(mcp.http_app(), log_level="warning")).run(sockets=[listening])
