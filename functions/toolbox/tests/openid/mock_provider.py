"""PyPI's oidc-provider-mock: python mock_provider.py [NAME=value …]

Users sign in under the name that they enter. Every client, secret and redirect URI is accepted, and PKCE is ignored.
  REFRESH           0: it issues no refresh tokens
  ACCESS_TOKEN_TTL  seconds, default 3600
For tests, on the same port:
  PUT  /users/SUB                 the claims of a user
  POST /users/SUB/revoke-tokens   revokes the tokens of a user"""

import logging
import os
from datetime import timedelta

import oidc_provider_mock
from provider_support import SETTINGS, end_with_stdin, listen

os.environ["AUTHLIB_INSECURE_TRANSPORT"] = "1"
logging.getLogger("werkzeug").setLevel(logging.ERROR)

app = oidc_provider_mock.app(
    issue_refresh_token=SETTINGS.get("REFRESH") != "0",
    access_token_max_age=timedelta(seconds=int(SETTINGS.get("ACCESS_TOKEN_TTL", 3600))),
)
server, url = listen(app)
end_with_stdin()
print(f"Serving OpenID on {url}", flush=True)
server.serve_forever()
