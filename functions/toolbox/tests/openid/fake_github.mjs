// A GitHub for a guide, with the answers that docs.github.com describes: node fake_github.mjs
// It looks like a GitHub Enterprise Server: the REST API is below /api/v3. The app is `toolbox`, with a secret. Everybody is
// a member of the organization `acme`. A request that is not right fails with the status 400.
//   GET  /test/redirect_uri?uri=…  allows a callback URL
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { form, formOf, json, listen, loginFields, page, send, serveAs } from './provider_support.mjs';

const redirectUris = [];
const codes = new Map();
const tokens = new Map();
const random = (prefix) => prefix + randomBytes(20).toString('hex');

function authorize(query, login, res) {
  const uri = query.get('redirect_uri');
  assert.ok(query.get('client_id') === 'toolbox' && redirectUris.includes(uri), `${query}`);
  if (!login) return send(res, 200, 'text/html; charset=utf-8', page('Sign in to GitHub', form(loginFields)));
  const code = random('');
  codes.set(code, { login, uri, scope: query.get('scope') ?? '', challenge: query.get('code_challenge') });
  const url = new URL(uri);
  url.searchParams.set('code', code);
  url.searchParams.set('state', query.get('state'));
  return res.writeHead(302, { Location: url.href }).end();
}

function accessToken(fields, res) {
  const { login, uri, scope, challenge } = codes.get(fields.get('code'));
  codes.delete(fields.get('code'));
  const hash = createHash('sha256').update(fields.get('code_verifier') ?? '').digest('base64url');
  assert.ok(!challenge || challenge === hash, 'the verifier is another');
  assert.deepEqual([fields.get('client_id'), fields.get('client_secret')], ['toolbox', 'toolbox-secret']);
  assert.equal(fields.get('redirect_uri') ?? uri, uri);
  const token = random('gho_');
  tokens.set(token, { login, scopes: scope.split(' ') });
  return json(res, 200, { access_token: token, scope: scope.split(' ').join(','), token_type: 'bearer' });
}

function api(path, headers, res) {
  assert.ok(headers['user-agent'], 'GitHub requires a User-Agent header');
  const { login, scopes } = tokens.get(headers.authorization.replace('Bearer ', ''));
  const user = { login, id: 583231, type: 'User', name: login, email: null };
  if (path === '/user') return json(res, 200, user);
  assert.equal(path.toLowerCase(), '/user/memberships/orgs/acme');
  assert.ok(scopes.includes('read:org'), `${scopes}`);
  return json(res, 200, { state: 'active', role: 'member', user, organization: { login: 'acme', id: 9919 } });
}

serveAs('GitHub', await listen(), async (req, res, { pathname, searchParams }) => {
  const fields = req.method === 'POST' ? await formOf(req) : undefined;
  if (pathname === '/login/oauth/authorize') authorize(searchParams, fields?.get('login'), res);
  else if (pathname === '/login/oauth/access_token') accessToken(fields, res);
  else if (pathname.startsWith('/api/v3/')) api(pathname.slice('/api/v3'.length), req.headers, res);
  else json(res, 200, redirectUris.push(searchParams.get('uri')));
});
