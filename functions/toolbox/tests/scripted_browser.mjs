// A browser without a person: it fills in the form of every page and presses the first button.
import { createServer } from 'node:net';

const mostPages = 16;

const entities = { amp: '&', lt: '<', gt: '>', quot: '"' };
const decoded = (text) => text.replace(/&(?:#(\d+)|#x([0-9a-f]+)|(\w+));/gi, (all, decimal, hex, name) => {
  if (name) return entities[name] ?? all;
  return String.fromCodePoint(decimal ? Number(decimal) : parseInt(hex, 16));
});

function attributesOf(tag) {
  const pairs = [...tag.matchAll(/\s([\w-]+)(?:\s*=\s*"([^"]*)")?/g)];
  return Object.fromEntries(pairs.map(([, name, value = '']) => [name, decoded(value)]));
}

/** Returns the action of a page's first form, and the fields that its first button sends. */
function formIn(page, user) {
  const [, start, content] = page.match(/(<form\b[^>]*>)([^]*?)<\/form>/) ?? [];
  if (start === undefined) return undefined;
  const fields = new URLSearchParams();
  for (const [tag] of content.matchAll(/<input\b[^>]*>/g)) {
    const { name, type, value = '' } = attributesOf(tag);
    if (name) fields.append(name, { hidden: value, password: 'password' }[type] ?? user);
  }
  const { name, value = '' } = attributesOf(content.match(/<button\b[^>]*>/)?.[0] ?? '');
  if (name) fields.append(name, value);
  return { action: attributesOf(start).action ?? '', fields };
}

/** Signs a user in and agrees to everything; returns the URL of the redirect back to the client. */
export async function browse(start, user, redirectUri) {
  const cookies = new Map();
  const open = async (address, body) => {
    const headers = { Cookie: [...cookies].map((pair) => pair.join('=')).join('; ') };
    const signal = AbortSignal.timeout(20_000);
    const response = await fetch(address, { method: body ? 'POST' : 'GET', body, headers, redirect: 'manual', signal });
    for (const cookie of response.headers.getSetCookie()) {
      const [name, value] = cookie.split(';')[0].split(/=(.*)/s);
      if (value) cookies.set(name, value);
      else cookies.delete(name);
    }
    return response;
  };
  let address = new URL(start);
  let response = await open(address);
  for (let pages = 0; pages < mostPages; pages += 1) {
    if (response.status >= 300 && response.status < 400) {
      address = new URL(response.headers.get('location'), address);
      if (address.href.startsWith(redirectUri)) return address;
      response = await open(address);
      continue;
    }
    const page = await response.text();
    const form = formIn(page, user);
    if (response.status !== 200 || !form) throw new Error(`${response.status} ${address} ${page}`);
    if (form.action) address = new URL(form.action, address);
    response = await open(address, form.fields);
  }
  throw new Error(`${address} does not lead back to the client`);
}

/** Returns a port of this machine for a client that must know it before it listens. */
export async function freePort() {
  const server = createServer();
  await new Promise((done) => { server.listen(0, '127.0.0.1', done); });
  const { port } = server.address();
  await new Promise((done) => { server.close(done); });
  return port;
}
