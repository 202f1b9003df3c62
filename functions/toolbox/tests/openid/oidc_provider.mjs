// A real OpenID provider for tests, where users sign in, and allow tools to act for them: node oidc_provider.mjs [NAME=value …]
// Clients may register themselves; for a requested `resource` (RFC 8707), access tokens are JWTs.
//   ACCESS_TOKEN_TTL  seconds, default 3600
//   ROTATE            1: every refresh returns a new refresh token, and reuse of the old one revokes the grant
// For tests, on the same port:
//   GET  /test/redirect_uri?uri=…      allows another redirect URI
//   GET  /test/revoke?user=…           revokes all grants of a user
//   GET  /test/stats                   the numbers of token requests by their grant type and result
import { generateKeyPairSync, randomUUID } from 'node:crypto';
import Provider from 'oidc-provider';
import { createMemoryAdapter } from 'oidc-provider/lib/adapters/memory_adapter.js'; // the default adapter, without its warning
import { env, json, listen, renderError, serve } from './provider_support.mjs';

const redirectUris = ['http://127.0.0.1/callback'];
const ownScopes = 'openid offline_access https://www.googleapis.com/auth/gmail.readonly https://www.googleapis.com/auth/gmail.send mail';
const resourceScopes = 'mail.read mail.send';

/** Most providers leave out the `alg` of a key for RS256. */
function newKey() {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  return { ...privateKey.export({ format: 'jwk' }), use: 'sig', kid: randomUUID() };
}

const listening = await listen();
const { issuer } = listening;

const day = 86400;
const resourceServer = { scope: resourceScopes, accessTokenFormat: 'jwt', jwt: { sign: { alg: 'RS256' } } };
const provider = new Provider(issuer, {
  adapter: createMemoryAdapter(),
  jwks: { keys: [newKey()] },
  clients: [{
    client_id: 'toolbox',
    client_secret: 'toolbox-secret',
    redirect_uris: redirectUris,
    grant_types: ['authorization_code', 'refresh_token'],
  }],
  scopes: `${ownScopes} ${resourceScopes}`.split(' '),
  pkce: { required: () => true },
  issueRefreshToken: (ctx, { grantTypes }) => grantTypes.includes('refresh_token'), // by default only for offline_access
  expiresWithSession: () => false, // by default true without offline_access
  rotateRefreshToken: env.ROTATE === '1',
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
      getResourceServerInfo: () => resourceServer,
      useGrantedResource: () => true,
    },
  },
  findAccount: (ctx, sub) => ({ accountId: sub, claims: () => ({ sub }) }),
  renderError,
});
const allows = provider.Client.prototype.redirectUriAllowed;
provider.Client.prototype.redirectUriAllowed = function redirectUriAllowed(uri) {
  return redirectUris.includes(uri) || allows.call(this, uri);
};

const stats = {};
const count = (result) => ({ oidc }) => {
  const type = oidc.params?.grant_type ?? oidc.body?.grant_type ?? 'unknown';
  stats[type] ??= { ok: 0, failed: 0 };
  stats[type][result] += 1;
};
provider.on('grant.success', count('ok'));
provider.on('grant.error', count('failed'));
provider.on('server_error', (ctx, error) => console.error(error));

const grants = new Map(); // grant id to account: the adapter cannot search by account
provider.on('grant.saved', (grant) => grants.set(grant.jti, grant.accountId));

async function revoke(user) {
  let revoked = 0;
  for (const [id, account] of grants) {
    if (account !== user) continue;
    grants.delete(id);
    for (const model of [provider.AccessToken, provider.RefreshToken, provider.AuthorizationCode]) await model.revokeByGrantId(id);
    await (await provider.Grant.find(id))?.destroy();
    revoked += 1;
  }
  return { revoked };
}

serve(listening, provider, async (req, res, { pathname, searchParams }) => {
  if (pathname === '/test/stats') json(res, 200, stats);
  else if (pathname === '/test/revoke') json(res, 200, await revoke(searchParams.get('user')));
  else if (pathname === '/test/redirect_uri') json(res, 200, redirectUris.push(searchParams.get('uri')));
  else return false;
  return true;
});
