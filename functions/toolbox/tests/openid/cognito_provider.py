"""A Cognito user pool, as moto serves it, and the access token of one of its users: USER.

Cognito's access tokens name no audience; their `client_id` is the app client's. Prints the pool's URL, then a line of
JSON with `access_token` and `client_id`.
"""

import json
import logging
import os
import stat
import sys
import threading

import boto3
from moto.cognitoidp.models import CognitoIdpUserPool
from moto.cognitoidp.responses import CognitoIdpOpenIdConfigurationResponse as Configuration
from moto.server import ThreadedMotoServer

user = sys.argv[1]
password = "A-password-1"
logging.getLogger("werkzeug").setLevel(logging.ERROR)

server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
create_jwt, configure = CognitoIdpUserPool.create_jwt, Configuration.serve_openid_configuration


def issuer_of(pool):
    return f"{url}/{pool}"


# Moto's issuer is at amazonaws.com, and no setting changes it. Here it is where moto serves the pool's documents.
def create_jwt_of_this_server(self, *args, extra_data=None, **kwargs):
    return create_jwt(self, *args, extra_data={**(extra_data or {}), "iss": issuer_of(self.id)}, **kwargs)


def serve_configuration_of_this_server(*args):
    status, headers, body = configure(*args)
    document = json.loads(body)
    document["issuer"] = document["jwks_uri"].removesuffix("/.well-known/jwks.json")
    return status, headers, json.dumps(document)


CognitoIdpUserPool.create_jwt = create_jwt_of_this_server
Configuration.serve_openid_configuration = staticmethod(serve_configuration_of_this_server)
server.start()
host, port = server.get_host_and_port()
url = f"http://{host}:{port}"

cognito = boto3.client(
    "cognito-idp", endpoint_url=url, region_name="us-east-1", aws_access_key_id="x", aws_secret_access_key="x"
)
pool = cognito.create_user_pool(PoolName="users")["UserPool"]["Id"]
client = cognito.create_user_pool_client(
    UserPoolId=pool, ClientName="agent", ExplicitAuthFlows=["ALLOW_USER_PASSWORD_AUTH"]
)["UserPoolClient"]["ClientId"]
cognito.admin_create_user(UserPoolId=pool, Username=user, MessageAction="SUPPRESS")
cognito.admin_set_user_password(UserPoolId=pool, Username=user, Password=password, Permanent=True)
answer = cognito.initiate_auth(
    ClientId=client, AuthFlow="USER_PASSWORD_AUTH", AuthParameters={"USERNAME": user, "PASSWORD": password}
)
print(f"Serving OpenID on {issuer_of(pool)}")
token = answer["AuthenticationResult"]["AccessToken"]
print(json.dumps({"access_token": token, "client_id": client}), flush=True)

mode = os.fstat(0).st_mode
if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):
    # The test keeps this pipe open; it closes when the test ends, for whatever reason.
    sys.stdin.buffer.read()
    os._exit(0)
threading.Event().wait()
