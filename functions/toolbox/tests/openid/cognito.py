"""A user pool of Cognito, as far as moto plays one: python cognito.py [NAME=value …]

Moto's are the pool, its client, its users and groups, the check of passwords, the claims of tokens, refresh
tokens, the keys and their JWKS. This program adds what moto lacks: the authorization and token endpoints
(the hosted UI), and their names in the metadata. Moto names AWS as the issuer and knows no nonce, so the
program replaces `iss`, adds `nonce`, and signs again with moto's key. Moto refreshes the tokens of disabled
users; this program does not.
  USERS   space separated, default `alice bob`; all have the password `password`
  STAFF   those of them in the group `staff`, default `alice`
The printed URL is the issuer. For tests, on the same port:
  GET  /test/client              {"client_id": …, "client_secret": …, "subjects": {NAME: its sub}}
  GET  /test/redirect_uri?uri=…  allows another callback URL
  GET  /test/disable?user=…      disables a user"""

import base64
import hashlib
import json
import logging
import os
import secrets
import threading
from urllib.parse import urlencode

import boto3
from botocore.exceptions import ClientError
from flask import Flask, Response, jsonify, redirect, request
from joserfc import jwk, jwt
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from moto.utilities.utils import load_resource
from provider_support import SETTINGS, end_with_stdin, listen
from werkzeug.test import Client

PASSWORD = "password"
POLICY = {"MinimumLength": 6} | dict.fromkeys(
    ("RequireUppercase", "RequireLowercase", "RequireNumbers", "RequireSymbols"), False
)
FORM = """<!doctype html><title>Sign in</title><form method="post"><input name="login" required>
<input name="password" type="password" required><button>Sign in</button></form>"""

logging.getLogger("werkzeug").setLevel(logging.ERROR)
key = jwk.RSAKey.import_key(load_resource("cognitoidp/resources/jwks-private.json"))
moto = DomainDispatcherApplication(create_backend_app)
hosted = Flask("hosted")
redirect_uris = []
codes = {}
users = {}


def app(environ, start_response):
    """Sends requests to moto, except those that it cannot answer."""
    path = environ["PATH_INFO"]
    is_own = path.startswith(("/oauth2/", "/test/")) or path.endswith("/openid-configuration")
    return (hosted if is_own else moto)(environ, start_response)


server, url = listen(app)
threading.Thread(target=server.serve_forever, daemon=True).start()
keys = {"aws_access_key_id": "test", "aws_secret_access_key": "test"}
cognito = boto3.client("cognito-idp", endpoint_url=url, region_name="us-east-1", **keys)
pool = cognito.create_user_pool(PoolName="test", Policies={"PasswordPolicy": POLICY})["UserPool"]["Id"]
issuer = f"{url}/{pool}"
client = cognito.create_user_pool_client(
    UserPoolId=pool,
    ClientName="toolbox",
    GenerateSecret=True,
    ExplicitAuthFlows=["ALLOW_ADMIN_USER_PASSWORD_AUTH", "ALLOW_REFRESH_TOKEN_AUTH"],
    ReadAttributes=["email", "email_verified"],
)["UserPoolClient"]
client_id, client_secret = client["ClientId"], client["ClientSecret"]
cognito.create_group(UserPoolId=pool, GroupName="staff")
for name in SETTINGS.get("USERS", "alice bob").split():
    attributes = {"email": f"{name}@acme.example", "email_verified": "true"}
    attributes = [{"Name": name, "Value": value} for name, value in attributes.items()]
    user = {"UserPoolId": pool, "Username": name}
    cognito.admin_create_user(**user, UserAttributes=attributes, MessageAction="SUPPRESS")
    cognito.admin_set_user_password(**user, Password=PASSWORD, Permanent=True)
    if name in SETTINGS.get("STAFF", "alice").split():
        cognito.admin_add_user_to_group(**user, GroupName="staff")


def initiate(flow, **parameters):
    """Returns tokens of moto, or None if it refuses."""
    named = {"UserPoolId": pool, "ClientId": client_id}
    try:
        answer = cognito.admin_initiate_auth(**named, AuthFlow=flow, AuthParameters=parameters)
    except ClientError:
        return None
    return answer["AuthenticationResult"]


def answer(tokens, **claims):
    """Returns moto's tokens as the token endpoint does."""

    def signed(token, **changes):
        header = {"kid": key.kid or "dummy", "alg": "RS256"}
        return jwt.encode(header, jwt.decode(token, key).claims | {"iss": issuer} | changes, key)

    answer = {"access_token": signed(tokens["AccessToken"]), "id_token": signed(tokens["IdToken"], **claims)}
    answer |= {"token_type": "Bearer", "expires_in": tokens["ExpiresIn"]}
    if "RefreshToken" in tokens:
        answer["refresh_token"] = tokens["RefreshToken"]
    return answer


@hosted.get("/<pool>/.well-known/openid-configuration")
def metadata(pool):
    document = json.loads(Client(moto).get(request.path, base_url=url).data)
    endpoints = {"authorization": "authorize", "token": "token"}
    document |= {f"{name}_endpoint": f"{url}/oauth2/{path}" for name, path in endpoints.items()}
    methods = ["client_secret_basic", "client_secret_post"]
    return document | {"issuer": issuer, "token_endpoint_auth_methods_supported": methods}


@hosted.route("/oauth2/authorize", methods=["GET", "POST"])
def authorize():
    asked = request.args
    is_known = asked.get("client_id") == client_id and asked.get("redirect_uri") in redirect_uris
    # Cognito accepts a resource only if the pool has a resource server of this name.
    if not is_known or asked.get("response_type") != "code" or "resource" in asked:
        return Response("invalid_request", status=400)
    if request.method == "GET":
        return FORM
    login, password = request.form["login"], request.form["password"]
    tokens = initiate("ADMIN_USER_PASSWORD_AUTH", USERNAME=login, PASSWORD=password)
    if tokens is None:
        return Response("Incorrect username or password.", status=401)
    code = secrets.token_urlsafe()
    codes[code] = asked, tokens
    users[tokens["RefreshToken"]] = login
    state = {"state": asked["state"]} if "state" in asked else {}
    return redirect(f"{asked['redirect_uri']}?{urlencode({'code': code} | state)}")


@hosted.post("/oauth2/token")
def token():
    form, basic = request.form, request.authorization
    given = (basic.username, basic.password) if basic else (form.get("client_id"), form.get("client_secret"))
    if given != (client_id, client_secret):
        return {"error": "invalid_client"}, 400
    if form.get("grant_type") == "refresh_token":
        tokens = refreshed(form.get("refresh_token"))
        return answer(tokens) if tokens else ({"error": "invalid_grant"}, 400)
    asked, tokens = codes.pop(form.get("code"), (None, None))
    if not asked or not is_proved(asked, form):
        return {"error": "invalid_grant"}, 400
    return answer(tokens, **({"nonce": asked["nonce"]} if "nonce" in asked else {}))


def is_proved(asked, form):
    """Returns true if a code is redeemed by the client that it was issued to."""
    digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
    challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
    is_same = asked["redirect_uri"] == form.get("redirect_uri")
    return is_same and asked.get("code_challenge", challenge) == challenge


def refreshed(refresh_token):
    login = users.get(refresh_token)
    if login is None or not cognito.admin_get_user(UserPoolId=pool, Username=login)["Enabled"]:
        return None
    return initiate("REFRESH_TOKEN_AUTH", REFRESH_TOKEN=refresh_token)


@hosted.get("/test/client")
def test_client():
    listed = cognito.list_users(UserPoolId=pool)["Users"]
    subjects = {user["Username"]: {it["Name"]: it["Value"] for it in user["Attributes"]}["sub"] for user in listed}
    return {"client_id": client_id, "client_secret": client_secret, "subjects": subjects}


@hosted.get("/test/redirect_uri")
def test_redirect_uri():
    redirect_uris.append(request.args["uri"])
    return jsonify(len(redirect_uris))


@hosted.get("/test/disable")
def test_disable():
    cognito.admin_disable_user(UserPoolId=pool, Username=request.args["user"])
    return {}


end_with_stdin()
print(f"Serving Cognito on {issuer}", flush=True)
threading.Event().wait()
