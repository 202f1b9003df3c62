// Runs MCP's conformance suite for authorization servers, whose user signs in: URL of the server and user. Registers a
// client for it. Prints one line of JSON: the exit code, and the status of each check, with the error if it failed.
import { spawn } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { browse, freePort } from './scripted_browser.mjs';

const [url, user] = process.argv.slice(2);
const suite = join(import.meta.dirname, 'node_modules/.bin/conformance');
const redirectUri = `http://127.0.0.1:${await freePort()}/callback`;

const metadata = await (await fetch(`${url}/.well-known/oauth-authorization-server`)).json();
const registered = await (await fetch(metadata.registration_endpoint, {
  method: 'POST',
  headers: { 'Content-Type': 'application/json' },
  body: JSON.stringify({ client_name: 'conformance', redirect_uris: [redirectUri], token_endpoint_auth_method: 'none' }),
  signal: AbortSignal.timeout(20_000),
})).json();

const folder = await mkdtemp(join(tmpdir(), 'conformance-'));
try {
  const settings = ['--url', url, '--client-id', registered.client_id, '--port', new URL(redirectUri).port];
  const more = ['--resource', `${url}/mcp`, '--output-dir', folder];
  const child = spawn(process.execPath, [suite, 'authorization', ...settings, ...more], {
    stdio: ['ignore', 'pipe', 'inherit'],
    timeout: 45_000,
    killSignal: 'SIGKILL',
  });
  const closed = new Promise((done) => { child.on('close', done); });
  const visits = [];
  const visit = async (address) => {
    const landed = await browse(address, user, redirectUri);
    await fetch(landed, { signal: AbortSignal.timeout(20_000) });
  };
  createInterface({ input: child.stdout }).on('line', (line) => {
    const isAddress = line.startsWith(`${metadata.authorization_endpoint}?`);
    if (isAddress) visits.push(visit(line).catch((error) => { child.kill('SIGKILL'); return error; }));
  });
  const code = await closed;
  const [error] = (await Promise.all(visits)).filter(Boolean);
  if (error) throw error;
  const files = (await readdir(folder, { recursive: true })).filter((name) => name.endsWith('checks.json'));
  const checks = (await Promise.all(files.map(async (name) => JSON.parse(await readFile(join(folder, name)))))).flat();
  const results = checks.map(({ id, status, errorMessage }) => [id, errorMessage ? `${status}: ${errorMessage}` : status]);
  console.log(JSON.stringify({ code, checks: Object.fromEntries(results) }));
} finally {
  await rm(folder, { recursive: true, force: true });
}
