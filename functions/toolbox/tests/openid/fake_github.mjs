// A GitHub for tests, with the answers that docs.github.com describes: node fake_github.mjs [NAME=value …]
// It looks like a GitHub Enterprise Server: the REST API is below /api/v3. The app is `toolbox`, with a secret.
//   ORGANIZATION  default acme
//   MEMBERS       its members, space separated, default `alice bob`; PENDING: people who are only invited, default `carol`
// For tests, on the same port:
//   GET  /test/redirect_uri?uri=…  allows another callback URL
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
  const granted = codes.get(fields.get('code'));
  codes.delete(fields.get('code'));
  const hash = createHash('sha256').update(fields.get('code_verifier') ?? '').digest('base64url');
  const isProved = !granted?.challenge || granted.challenge === hash;
  if (!granted || !isProved || granted.until < Date.now()) return fail('bad_verification_code', 'The code passed is incorrect or expired.');
  if ((fields.get('redirect_uri') ?? granted.uri) !== granted.uri) return fail('redirect_uri_mismatch', 'The redirect_uri MUST match the registered callback URL for this application.');
  const { login, scope } = granted;
  const token = random('gho_');
  tokens.set(token, { login, scope });
  return answer({ access_token: token, scope: scope.split(' ').join(','), token_type: 'bearer' });
}

function api(path, headers, res) {
  const fail = (status, message) => json(res, status, { message, documentation_url: docs, status: String(status) });
  if (!headers['user-agent']) return send(res, 403, 'text/html', 'Request forbidden by administrative rules. Please make sure your request has a User-Agent header.');
  const [, bearer] = headers.authorization?.match(/^(?:Bearer|token) (\S+)$/i) ?? [];
  if (!bearer) return fail(401, 'Requires authentication');
  const token = tokens.get(bearer);
  if (!token) return fail(401, 'Bad credentials');
  const { login, scope } = token;
  const scopes = scope.split(' ');
  res.setHeader('X-OAuth-Scopes', scopes.join(', '));
  if (path === '/user') return json(res, 200, user(login));
  const [, asked] = path.match(/^\/user\/memberships\/orgs\/([^/]+)$/) ?? [];
  if (!asked) return fail(404, 'Not Found');
  if (!['read:org', 'write:org', 'admin:org'].some((name) => scopes.includes(name))) {
    return fail(403, 'You need at least read:org scope to get your membership of an organization.');
  }
  const state = asked.toLowerCase() === organization.toLowerCase() ? states.get(login) : undefined;
  if (!state) return fail(404, 'Not Found');
  return json(res, 200, { state, role: 'member', user: user(login), organization: { login: organization, id: 9919 } });
}

serveAs('GitHub', listening, async (req, res, { pathname, searchParams }) => {
  const fields = req.method === 'POST' ? await formOf(req) : undefined;
  const { accept = '' } = req.headers;
  if (pathname === '/login/oauth/authorize') {
    const login = fields?.get('action') === 'allow' ? fields.get('login') : fields && null;
    authorize(searchParams, login === undefined ? searchParams.get('user') ?? undefined : login, res);
  } else if (pathname === '/login/oauth/access_token' && fields) accessToken(fields, accept, res);
  else if (pathname.startsWith('/api/v3/')) api(pathname.slice('/api/v3'.length), req.headers, res);
  else if (pathname === '/test/redirect_uri') json(res, 200, redirectUris.push(searchParams.get('uri')));
  else send(res, 404, 'text/html', page('Not Found', ''));
});
