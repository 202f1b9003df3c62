// A real OpenID provider for tests: node oidc_provider.mjs [NAME=value …], settings from the environment too.
//   REDIRECT_URI      allowed redirect URIs, comma separated; more with POST /test/redirect_uri?uri=…
//   CLIENT_ID         default toolbox (client_secret_basic); the client "<CLIENT_ID>-post" uses client_secret_post
//   CLIENT_SECRET     default toolbox-secret
//   ACCESS_TOKEN_TTL  seconds, default 3600
//   SCOPES            known scopes, space separated; an unknown one in a request is ignored (Google rejects it)
//   ROTATE            1: every refresh returns a new refresh token, and reuse of the old one revokes the grant
//   TOKEN_DELAY_MS    delays each token request, so that concurrent refreshes overlap
import { generateKeyPairSync } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import Provider from 'oidc-provider';
import { createMemoryAdapter } from 'oidc-provider/lib/adapters/memory_adapter.js'; // the default adapter, without its warning
import { env, json, listen, renderError, serve } from './provider_support.mjs';

const clientId = env.CLIENT_ID || 'toolbox';
const redirectUris = (env.REDIRECT_URI || 'http://127.0.0.1/callback').split(',');
const scopes = (env.SCOPES || 'openid offline_access https://www.googleapis.com/auth/gmail.readonly '
  + 'https://www.googleapis.com/auth/gmail.send mail').split(' ');

const listening = await listen();
const { issuer } = listening;

const client = (id, method) => ({
  client_id: id,
  client_secret: env.CLIENT_SECRET || 'toolbox-secret',
  token_endpoint_auth_method: method,
  redirect_uris: redirectUris,
  grant_types: ['authorization_code', 'refresh_token'],
});
const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
const day = 86400;
const provider = new Provider(issuer, {
  adapter: createMemoryAdapter(),
  jwks: { keys: [{ ...privateKey.export({ format: 'jwk' }), use: 'sig', alg: 'RS256' }] },
  clients: [client(clientId, 'client_secret_basic'), client(`${clientId}-post`, 'client_secret_post')],
  scopes,
  pkce: { required: () => true },
  issueRefreshToken: () => true, // by default only for offline_access, which needs prompt=consent
  expiresWithSession: () => false, // by default true without offline_access
  rotateRefreshToken: env.ROTATE === '1',
  ttl: {
    AccessToken: Number(env.ACCESS_TOKEN_TTL || 3600),
    AuthorizationCode: 60, IdToken: 3600, Interaction: 3600, RefreshToken: day, Session: day, Grant: day,
  },
  features: {
    devInteractions: { enabled: false }, // its pages load a font from the Internet
    revocation: { enabled: true, allowedPolicy: (ctx, c, token) => token.clientId === c.clientId },
    introspection: { enabled: true, allowedPolicy: () => true },
  },
  findAccount: (ctx, sub) => ({ accountId: sub, claims: () => ({ sub }) }),
  renderError,
});
provider.Client.prototype.redirectUriAllowed = (uri) => redirectUris.includes(uri);

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

async function whoami(req, res) {
  const token = await provider.AccessToken.find(req.headers.authorization?.replace(/^Bearer /i, '') ?? '');
  if (!token) return json(res, 401, { error: 'invalid_token' });
  return json(res, 200, { user: token.accountId, scope: token.scope, client_id: token.clientId });
}

serve(listening, provider, async (req, res, { pathname, searchParams }) => {
  if (pathname === '/whoami') await whoami(req, res);
  else if (pathname === '/test/stats') json(res, 200, stats);
  else if (pathname === '/test/revoke') json(res, 200, await revoke(searchParams.get('user')));
  else if (pathname === '/test/redirect_uri') json(res, 200, redirectUris.push(searchParams.get('uri')));
  else {
    if (pathname === '/token') await sleep(Number(env.TOKEN_DELAY_MS || 0));
    return false;
  }
  return true;
});
