"""An authorization server made with Authlib, where the users of MCP clients sign in: its clients register themselves
(RFC 7591), and its access tokens are JWTs (RFC 9068) for the requested `resource` (RFC 8707), signed with ES256. It has
the metadata of RFC 8414 and none of OpenID. Settings as NAME=value:

  CLIENT_ID         a registered client without secret, default mcp-client
  REDIRECT_URI      its redirect URI, default http://127.0.0.1/callback
  SCOPES            known scopes, space separated, default "mail.read mail.send"
  ACCESS_TOKEN_TTL  seconds, default 3600
"""

import os
import secrets
import stat
import sys
import threading
from html import escape
from types import SimpleNamespace

from authlib.integrations.flask_oauth2 import AuthorizationServer
from authlib.oauth2 import OAuth2Error
from authlib.oauth2.rfc6749 import AuthorizationCodeMixin, ClientMixin, grants, list_to_scope, scope_to_list
from authlib.oauth2.rfc7591 import ClientRegistrationEndpoint
from authlib.oauth2.rfc7636 import CodeChallenge
from authlib.oauth2.rfc8414 import AuthorizationServerMetadata
from authlib.oauth2.rfc9068 import JWTBearerTokenGenerator
from authlib.oauth2.rfc9207 import IssuerParameter
from flask import Flask, g, jsonify, request
from joserfc.jwk import ECKey, KeySet
from werkzeug.serving import WSGIRequestHandler, make_server

settings = dict(argument.split("=", 1) for argument in sys.argv[1:])
scopes = settings.get("SCOPES", "mail.read mail.send").split()
# Otherwise it demands HTTPS.
os.environ["AUTHLIB_INSECURE_TRANSPORT"] = "1"

app = Flask(__name__)


class Quiet(WSGIRequestHandler):
    """Logs no requests."""

    def log_request(self, *_):
        pass


listening = make_server("127.0.0.1", 0, app, threaded=True, request_handler=Quiet)
issuer = f"http://127.0.0.1:{listening.server_port}"
keys = KeySet([ECKey.generate_key("P-256", {"use": "sig", "alg": "ES256"}, auto_kid=True)])
clients = {}
codes = {}


class Client(ClientMixin):
    """A registered client."""

    def __init__(self, client_id, secret=None, **metadata):
        self.client_id = client_id
        self.secret = secret
        self.redirect_uris = metadata["redirect_uris"]
        self.method = metadata["token_endpoint_auth_method"]
        self.grant_types = metadata.get("grant_types", ["authorization_code"])

    def get_client_id(self):
        return self.client_id

    def get_default_redirect_uri(self):
        return self.redirect_uris[0]

    def get_allowed_scope(self, scope):
        # Clients register with the scopes they need first. They may ask for others later.
        return list_to_scope([name for name in scope_to_list(scope or "") if name in scopes])

    def check_redirect_uri(self, redirect_uri):
        return redirect_uri in self.redirect_uris

    def check_client_secret(self, client_secret):
        return secrets.compare_digest(self.secret or "", client_secret)

    def check_endpoint_auth_method(self, method, endpoint):
        return method == self.method

    def check_response_type(self, response_type):
        return response_type == "code"

    def check_grant_type(self, grant_type):
        return grant_type in self.grant_types


class Code(SimpleNamespace, AuthorizationCodeMixin):
    """An authorization code."""

    def get_redirect_uri(self):
        return self.redirect_uri

    def get_scope(self):
        return self.scope


class User(SimpleNamespace):
    """Whoever signs in."""

    def get_user_id(self):
        return self.name


class AuthorizationCodeGrant(grants.AuthorizationCodeGrant):
    TOKEN_ENDPOINT_AUTH_METHODS = ["none", "client_secret_basic", "client_secret_post"]

    def save_authorization_code(self, code, request):
        data = request.payload.data
        codes[code] = Code(
            code=code,
            client_id=request.client.client_id,
            redirect_uri=request.payload.redirect_uri,
            scope=request.scope,
            user=request.user,
            resource=data.get("resource"),
            code_challenge=data["code_challenge"],
            code_challenge_method=data["code_challenge_method"],
        )

    def query_authorization_code(self, code, client):
        found = codes.get(code)
        if not found or found.client_id != client.client_id:
            return None
        # Where the token's generator looks for it, which does not know RFC 8707.
        g.resource = found.resource
        if self.request.form.get("resource", found.resource) != found.resource:
            return None
        return found

    def delete_authorization_code(self, authorization_code):
        del codes[authorization_code.code]

    def authenticate_user(self, authorization_code):
        return authorization_code.user


class S256(CodeChallenge):
    SUPPORTED_CODE_CHALLENGE_METHOD = ["S256"]


class AccessTokens(JWTBearerTokenGenerator):
    def get_jwks(self):
        return keys

    def get_audiences(self, client, user, scope):
        return g.resource or client.get_client_id()


class Registration(ClientRegistrationEndpoint):
    def authenticate_token(self, request):
        return "anybody"

    def get_server_metadata(self):
        return metadata

    def generate_client_info(self, request):
        info = super().generate_client_info(request)
        if request.payload.data.get("token_endpoint_auth_method") == "none":
            del info["client_secret"], info["client_secret_expires_at"]
        return info

    def save_client(self, client_info, client_metadata, request):
        client = Client(client_info["client_id"], client_info.get("client_secret"), **client_metadata)
        clients[client.client_id] = client
        return client


class Issuer(IssuerParameter):
    def get_issuer(self):
        return issuer


metadata = AuthorizationServerMetadata(
    issuer=issuer,
    authorization_endpoint=f"{issuer}/authorize",
    token_endpoint=f"{issuer}/token",
    registration_endpoint=f"{issuer}/register",
    jwks_uri=f"{issuer}/jwks",
    scopes_supported=scopes,
    response_types_supported=["code"],
    # Clients ask for refresh tokens, and get none.
    grant_types_supported=["authorization_code", "refresh_token"],
    token_endpoint_auth_methods_supported=AuthorizationCodeGrant.TOKEN_ENDPOINT_AUTH_METHODS,
    code_challenge_methods_supported=["S256"],
    authorization_response_iss_parameter_supported=True,
)
registered = Client(
    settings.get("CLIENT_ID", "mcp-client"),
    redirect_uris=[settings.get("REDIRECT_URI", "http://127.0.0.1/callback")],
    token_endpoint_auth_method="none",
)
clients[registered.client_id] = registered
server = AuthorizationServer(app, query_client=clients.get, save_token=lambda token, request: None)
server.register_grant(AuthorizationCodeGrant, [S256()])
server.register_token_generator(
    "default", AccessTokens(issuer, alg="ES256", expires_generator=int(settings.get("ACCESS_TOKEN_TTL", 3600)))
)
server.register_endpoint(Registration)
server.register_extension(Issuer())


@app.get("/.well-known/oauth-authorization-server")
def discover():
    return jsonify(metadata)


@app.get("/jwks")
def jwks():
    return jsonify(keys.as_dict(private=False))


@app.post("/register")
def register():
    return server.create_endpoint_response("client_registration")


@app.post("/token")
def token():
    return server.create_token_response()


@app.route("/authorize", methods=["GET", "POST"])
def authorize():
    """One page to sign in and to allow what the client asks for. Its form is sent to the URL of the page."""
    try:
        grant = server.get_consent_grant()
    except OAuth2Error as error:
        return server.handle_error_response(None, error)
    if not request.values.get("code_challenge"):
        return "PKCE is required", 400
    if request.method == "POST":
        user = User(name=request.form["login"]) if request.form.get("action") == "allow" else None
        return server.create_authorization_response(grant_user=user, grant=grant)
    client, asked = escape(grant.client.client_id), escape(grant.request.scope)
    return f"""<!doctype html><html lang="en"><meta charset="utf-8"><title>Sign in</title>
<h1>Sign in</h1><p>{client} asks for: {asked}</p><form method="post"><input name="login"><input name="password">
<button name="action" value="allow">Continue</button><button name="action" value="deny">Cancel</button></form>"""


def stop_with_the_test():
    """The test keeps this pipe open; it closes when the test ends, for whatever reason."""
    sys.stdin.buffer.read()
    os._exit(0)


mode = os.fstat(0).st_mode
if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):
    threading.Thread(target=stop_with_the_test, daemon=True).start()
metadata.validate()
print(f"Serving OpenID on {issuer}", flush=True)
listening.serve_forever()
