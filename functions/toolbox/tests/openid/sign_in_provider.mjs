// A real OpenID provider where the users of MCP clients sign in: node sign_in_provider.mjs [NAME=value …], settings from
// the environment too. Clients register themselves; access tokens are JWTs for the requested `resource` (RFC 8707).
//   ALG               signs access tokens: RS256 (default), PS256, ES256, ES384 or EdDSA
//   CLIENT_ID         a registered client without secret, default mcp-client
//   REDIRECT_URI      its redirect URI, default http://127.0.0.1/callback; the port does not matter (RFC 8252)
//   SCOPES            scopes of all resources, space separated, default "mail.read mail.send"
//   ACCESS_TOKEN_TTL  seconds, default 3600
// For tests, on the same port:
//   POST /test/rotate_keys[?drop=old]  makes new keys; without `drop`, the old ones can still verify
//   GET  /test/token?user=…&resource=…[&scope=…][&alg=…][&ttl=…][&client_id=…]  an access token without a browser
//   GET  /test/stats                   the numbers of requests for its metadata, keys, tokens and registration
import { generateKeyPairSync, randomUUID } from 'node:crypto';
import Provider from 'oidc-provider';
import { createMemoryAdapter } from 'oidc-provider/lib/adapters/memory_adapter.js'; // the default adapter, without its warning
import initializeKeyStore from 'oidc-provider/lib/helpers/initialize_keystore.js';
import { env, json, listen, renderError, serve } from './provider_support.mjs';

const scopes = (env.SCOPES || 'mail.read mail.send').split(' ');
const alg = env.ALG || 'RS256';

/** A key for each algorithm. Most providers leave out the `alg` of a key for RS256. */
function newKeys() {
  const kinds = [
    ['rsa', { modulusLength: 2048 }], ['rsa', { modulusLength: 2048 }, 'PS256'],
    ['ec', { namedCurve: 'P-256' }, 'ES256'], ['ec', { namedCurve: 'P-384' }, 'ES384'], ['ed25519', {}, 'EdDSA'],
  ];
  return kinds.map(([kind, options, name]) => {
    const { privateKey } = generateKeyPairSync(kind, options);
    return { ...privateKey.export({ format: 'jwk' }), use: 'sig', alg: name, kid: randomUUID() };
  });
}

const listening = await listen();
const { issuer } = listening;

let keys = newKeys();
const day = 86400;
const resourceServer = (signedWith) => ({
  scope: scopes.join(' '),
  accessTokenFormat: 'jwt',
  jwt: { sign: { alg: signedWith } },
});
const provider = new Provider(issuer, {
  adapter: createMemoryAdapter(),
  jwks: { keys },
  clients: [{
    client_id: env.CLIENT_ID || 'mcp-client',
    application_type: 'native',
    token_endpoint_auth_method: 'none',
    redirect_uris: [env.REDIRECT_URI || 'http://127.0.0.1/callback'],
    grant_types: ['authorization_code', 'refresh_token'],
  }],
  scopes: ['openid', 'offline_access', ...scopes],
  pkce: { required: () => true },
  issueRefreshToken: (ctx, client) => client.grantTypeAllowed('refresh_token'), // by default only for offline_access
  expiresWithSession: () => false, // by default true without offline_access
  ttl: {
    AccessToken: Number(env.ACCESS_TOKEN_TTL || 3600),
    AuthorizationCode: 60, IdToken: 3600, Interaction: 3600, RefreshToken: day, Session: day, Grant: day,
  },
  // The clients register with the scopes they need first. They will need more later, and a client may only use the scopes
  // that it is registered with, so the server registers all of them, as RFC 7591 section 3.2.1 allows.
  extraClientMetadata: {
    properties: ['software_version'],
    validator(ctx, property, value, metadata) { delete metadata.scope; },
  },
  features: {
    devInteractions: { enabled: false }, // its pages load a font from the Internet
    registration: { enabled: true },
    resourceIndicators: {
      enabled: true,
      getResourceServerInfo: () => resourceServer(alg),
      useGrantedResource: () => true,
    },
  },
  findAccount: (ctx, sub) => ({ accountId: sub, claims: () => ({ sub }) }),
  renderError,
});
provider.on('server_error', (ctx, error) => console.error(error));

/** The provider signs with the first key that fits. */
function rotateKeys(dropOld) {
  keys = dropOld ? newKeys() : [...newKeys(), ...keys];
  initializeKeyStore.call(provider, { keys });
  return { kids: keys.map(({ kid }) => kid) };
}

/** An access token as the token endpoint would issue it. */
async function issueToken(asked) {
  const client = await provider.Client.find(asked.get('client_id') || env.CLIENT_ID || 'mcp-client');
  const token = new provider.AccessToken({
    accountId: asked.get('user'),
    client,
    expiresIn: Number(asked.get('ttl')) || undefined,
    gty: 'authorization_code',
    scope: asked.get('scope') || undefined,
    resourceServer: new provider.ResourceServer(asked.get('resource'), resourceServer(asked.get('alg') || alg)),
  });
  return { access_token: await token.save(), token_type: 'Bearer', expires_in: token.expiration };
}

const stats = { '/.well-known/openid-configuration': 0, '/jwks': 0, '/token': 0, '/reg': 0 };
serve(listening, provider, async (req, res, { pathname, searchParams }) => {
  if (pathname === '/test/token') json(res, 200, await issueToken(searchParams));
  else if (pathname === '/test/rotate_keys' && req.method === 'POST') json(res, 200, rotateKeys(searchParams.get('drop') === 'old'));
  else if (pathname === '/test/stats') json(res, 200, stats);
  else {
    if (pathname in stats) stats[pathname] += 1;
    return false;
  }
  return true;
});
