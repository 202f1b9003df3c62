// A GitHub for tests, with the answers that docs.github.com describes: node fake_github.mjs [NAME=value …]
// It looks like a GitHub Enterprise Server: the REST API is below /api/v3. The app is `toolbox`, with a secret.
//   ORGANIZATION  default acme
//   MEMBERS       its members, space separated, default `alice bob`; PENDING: people who are only invited, default `carol`
//   EXPIRES       seconds after which tokens expire, as those of GitHub Apps may, with a refresh token; default: never
// For tests, on the same port:
//   GET  /test/redirect_uri?uri=…  allows another callback URL
//   GET  /test/user?login=…        what GET /user returns for this person
//   GET  /test/leave?login=…       removes a member from the organization
//   GET  /test/revoke?login=…      revokes the tokens of a person
//   GET  /test/limit?requests=…    the API rejects so many requests as too many
// A `user` in the query of /login/oauth/authorize is signed in without a page.
import { createHash, randomBytes } from 'node:crypto';
import { env, form, formOf, json, listen, loginFields, page, send, serveAs } from './provider_support.mjs';

const app = { client_id: 'toolbox', client_secret: 'toolbox-secret' };
const organization = env.ORGANIZATION || 'acme';
const states = new Map([
  ...(env.PENDING ?? 'carol').split(' ').map((login) => [login, 'pending']),
  ...(env.MEMBERS ?? 'alice bob').split(' ').map((login) => [login, 'active']),
]);
const redirectUris = [];
const codes = new Map();
const tokens = new Map();
const refreshTokens = new Map();
let limited = 0;
const listening = await listen();
const docs = `${listening.issuer}/docs`;

const random = (prefix) => prefix + randomBytes(20).toString('hex');
const user = (login) => ({ login, id: createHash('sha256').update(login).digest().readUInt32BE(), type: 'User', name: login, email: null });

function authorize(query, login, res) {
  const uri = query.get('redirect_uri') ?? redirectUris[0];
  const back = (fields) => {
    const url = new URL(redirectUris.includes(uri) ? uri : redirectUris[0]);
    const state = query.has('state') ? { state: query.get('state') } : {};
    for (const [name, value] of Object.entries({ ...fields, ...state })) url.searchParams.set(name, value);
    res.writeHead(302, { Location: url.href }).end();
  };
  if (query.get('client_id') !== app.client_id || redirectUris.length === 0) return send(res, 404, 'text/html', page('Not Found', ''));
  if (!redirectUris.includes(uri)) return back({ error: 'redirect_uri_mismatch', error_description: 'The redirect_uri MUST match the registered callback URL for this application.' });
  if (login === undefined) return send(res, 200, 'text/html; charset=utf-8', page('Sign in to GitHub', form(loginFields)));
  if (login === null) return back({ error: 'access_denied', error_description: 'The user has denied your application access.' });
  const code = random('');
  codes.set(code, { login, uri, scope: query.get('scope') ?? '', challenge: query.get('code_challenge'), until: Date.now() + 600_000 });
  return back({ code });
}

/** Answers with a token or an error, both with the status 200: as JSON only for those who ask for it. */
function accessToken(fields, accept, res) {
  const answer = (values) => (accept.includes('application/json') ? json(res, 200, values)
    : send(res, 200, 'application/x-www-form-urlencoded; charset=utf-8', new URLSearchParams(values).toString()));
  const fail = (error, error_description) => answer({ error, error_description, error_uri: `${docs}/#${error}` });
  const isApp = Object.entries(app).every(([name, value]) => fields.get(name) === value);
  if (!isApp) return fail('incorrect_client_credentials', 'The client_id and/or client_secret passed are incorrect.');
  const isRefresh = fields.get('grant_type') === 'refresh_token';
  const [store, name] = isRefresh ? [refreshTokens, 'refresh_token'] : [codes, 'code'];
  const granted = store.get(fields.get(name));
  store.delete(fields.get(name));
  if (isRefresh && !granted) return fail('bad_refresh_token', 'The refresh token passed is incorrect or expired.');
  const hash = createHash('sha256').update(fields.get('code_verifier') ?? '').digest('base64url');
  const isProved = isRefresh || !granted?.challenge || granted.challenge === hash;
  if (!granted || !isProved || granted.until < Date.now()) return fail('bad_verification_code', 'The code passed is incorrect or expired.');
  if (!isRefresh && (fields.get('redirect_uri') ?? granted.uri) !== granted.uri) return fail('redirect_uri_mismatch', 'The redirect_uri MUST match the registered callback URL for this application.');
  const { login, scope, replaces } = granted;
  tokens.delete(replaces); // a refresh ends the old token, too
  const seconds = Number(env.EXPIRES || 0);
  const token = random(seconds ? 'ghu_' : 'gho_');
  tokens.set(token, { login, scope, until: seconds ? Date.now() + seconds * 1000 : Infinity });
  if (!seconds) return answer({ access_token: token, scope: scope.split(' ').join(','), token_type: 'bearer' });
  const refresh = random('ghr_');
  refreshTokens.set(refresh, { login, scope, replaces: token });
  return answer({ access_token: token, expires_in: seconds, refresh_token: refresh, refresh_token_expires_in: 15_897_600, scope: '', token_type: 'bearer' });
}

function api(path, headers, res) {
  const fail = (status, message) => json(res, status, { message, documentation_url: docs, status: String(status) });
  if (!headers['user-agent']) return send(res, 403, 'text/html', 'Request forbidden by administrative rules. Please make sure your request has a User-Agent header.');
  const [, bearer] = headers.authorization?.match(/^(?:Bearer|token) (\S+)$/i) ?? [];
  if (!bearer) return fail(401, 'Requires authentication');
  const token = tokens.get(bearer);
  if (!token || token.until < Date.now()) return fail(401, 'Bad credentials');
  const { login, scope } = token;
  const scopes = scope.split(' ');
  res.setHeader('X-OAuth-Scopes', scopes.join(', '));
  res.setHeader('X-RateLimit-Remaining', limited > 0 ? '0' : '4999');
  if (limited > 0) {
    limited -= 1;
    return fail(403, `API rate limit exceeded for user ID ${user(login).id}.`);
  }
  if (path === '/user') return json(res, 200, user(login));
  const [, asked] = path.match(/^\/user\/memberships\/orgs\/([^/]+)$/) ?? [];
  if (!asked) return fail(404, 'Not Found');
  // Apps of GitHub have permissions in place of scopes.
  if (!env.EXPIRES && !['read:org', 'write:org', 'admin:org'].some((name) => scopes.includes(name))) {
    return fail(403, 'You need at least read:org scope to get your membership of an organization.');
  }
  const state = asked.toLowerCase() === organization.toLowerCase() ? states.get(login) : undefined;
  if (!state) return fail(404, 'Not Found');
  return json(res, 200, { state, role: 'member', user: user(login), organization: { login: organization, id: 9919 } });
}

function test(path, query, res) {
  const login = query.get('login');
  if (path === 'redirect_uri') return json(res, 200, redirectUris.push(query.get('uri')));
  if (path === 'user') return json(res, 200, user(login));
  if (path === 'leave') return json(res, 200, states.delete(login));
  if (path === 'limit') return json(res, 200, limited = Number(query.get('requests')));
  if (path !== 'revoke') return json(res, 404, {});
  const revoke = (store) => [...store].filter(([key, { login: owner }]) => owner === login && store.delete(key)).length;
  return json(res, 200, { revoked: revoke(tokens) + revoke(refreshTokens) });
}

serveAs('GitHub', listening, async (req, res, { pathname, searchParams }) => {
  const fields = req.method === 'POST' ? await formOf(req) : undefined;
  const { accept = '' } = req.headers;
  if (pathname === '/login/oauth/authorize') {
    const login = fields?.get('action') === 'allow' ? fields.get('login') : fields && null;
    authorize(searchParams, login === undefined ? searchParams.get('user') ?? undefined : login, res);
  } else if (pathname === '/login/oauth/access_token' && fields) accessToken(fields, accept, res);
  else if (pathname.startsWith('/api/v3/')) api(pathname.slice('/api/v3'.length), req.headers, res);
  else if (pathname.startsWith('/test/')) test(pathname.slice('/test/'.length), searchParams, res);
  else send(res, 404, 'text/html', page('Not Found', ''));
});
