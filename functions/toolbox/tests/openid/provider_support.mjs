// What the identity providers for tests share: settings, the server, and the pages where users decide.
import { fstatSync } from 'node:fs';
import { createServer } from 'node:http';

/** Settings from the environment and from arguments of the form NAME=value. */
export const env = { ...process.env, ...Object.fromEntries(process.argv.slice(2).map((a) => a.split(/=(.*)/s, 2))) };

// The library prints notices with console.info; stdout is reserved for the line that tests wait for.
console.info = console.error;

/** Listens on a free port before the provider is created, because the issuer contains the port. */
export async function listen() {
  const server = createServer();
  // Otherwise a client that comes back after five seconds may send its request while the connection is closed.
  server.keepAliveTimeout = 0;
  await new Promise((done) => { server.listen(0, '127.0.0.1', done); });
  return { server, issuer: `http://127.0.0.1:${server.address().port}` };
}

/** Serves the pages and `other`, and everything else with the provider, until the test ends. */
export function serve(listening, provider, other) {
  const oidc = provider.callback();
  serveAs('OpenID', listening, async (req, res, url) => {
    if (url.pathname.startsWith('/interaction/')) await interaction(provider, req, res);
    else if (!await other(req, res, url)) oidc(req, res);
  });
}

/** Serves with a handler until the test ends. */
export function serveAs(name, { server, issuer }, handler) {
  server.on('request', async (req, res) => {
    try {
      await handler(req, res, new URL(req.url, issuer));
    } catch (error) {
      send(res, 400, 'text/plain', `${error.name}: ${error.message}`);
    }
  });
  const stop = () => process.exit(0);
  process.on('SIGTERM', stop);
  // The test keeps this pipe open; it closes when the test ends, for whatever reason.
  if (fstatSync(0).isFIFO() || fstatSync(0).isSocket()) process.stdin.on('close', stop).resume();
  console.log(`Serving ${name} on ${issuer}`);
}

export function send(res, status, type, body) {
  res.writeHead(status, { 'Content-Type': type, 'Cache-Control': 'no-store' }).end(body);
}

export const json = (res, status, value) => send(res, status, 'application/json', JSON.stringify(value));

/** For the provider's `renderError`: the default page loads a font from the Internet. */
export function renderError(ctx, out) {
  ctx.type = 'html';
  ctx.body = page('Error', `<p id="error">${escape(out.error)}: ${escape(out.error_description)}</p>`);
}

function escape(text) {
  return String(text ?? '').replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);
}

export function page(title, body) {
  return `<!doctype html><html lang="en"><meta charset="utf-8"><title>${title}</title>
<style>body { font: 16px sans-serif; max-width: 24em; margin: 3em auto } input, button { display: block; margin: .5em 0 }</style>
<h1>${title}</h1>${body}</html>`;
}

export const form = (fields) => `<form method="post">${fields}<button name="action" value="allow">Continue</button>
<button name="action" value="deny" formnovalidate>Cancel</button></form>`;

/** The fields of a form. */
export async function formOf(req) {
  let body = '';
  for await (const chunk of req) body += chunk;
  return new URLSearchParams(body);
}

export const loginFields = '<input name="login" placeholder="any name" required autofocus><input name="password" type="password" autocomplete="current-password" placeholder="any password">';

/** The pages: sign in under any name, then allow or deny what the client asks for. */
async function interaction(provider, req, res) {
  const { prompt, params, session, grantId } = await provider.interactionDetails(req, res);
  const scopes = prompt.details.missingOIDCScope ?? [];
  const resources = Object.entries(prompt.details.missingResourceScopes ?? {});
  if (req.method === 'GET') {
    const missing = new Set([...scopes, ...resources.flatMap(([, names]) => names)]);
    return send(res, 200, 'text/html; charset=utf-8', prompt.name === 'login'
      ? page('Sign in', form(loginFields))
      : page('Allow access', `<p>${escape(params.client_id)} asks ${escape(session.accountId)} for:</p>
<ul>${[...missing].map((s) => `<li>${escape(s)}</li>`).join('')}</ul>${form('')}`));
  }
  const fields = await formOf(req);
  const finish = (result) => provider.interactionFinished(req, res, result);
  if (fields.get('action') !== 'allow') {
    return finish({ error: 'access_denied', error_description: 'the user said no' });
  }
  if (prompt.name === 'login') return finish({ login: { accountId: fields.get('login') } });
  const grant = (grantId && await provider.Grant.find(grantId))
    || new provider.Grant({ accountId: session.accountId, clientId: params.client_id });
  grant.addOIDCScope(scopes.join(' '));
  for (const [resource, names] of resources) grant.addResourceScope(resource, names.join(' '));
  return finish({ consent: { grantId: await grant.save() } });
}
