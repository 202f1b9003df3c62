// Calls an MCP server with the Inspector's command line, which lets its user sign in: URL of the server and user. The
// Inspector prints the address that the user must visit, and listens for the redirect back. Each call is a process of its
// own, and asks for all scopes of the server; the second one finds the tokens of the first. Prints one line of JSON.
//   --mode legacy|auto|modern, --tool TOOL, --arguments JSON
//   --then TOOL          then calls this tool
//   --metadata-url URL   the client's metadata document, in place of a registration
import { spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';
import { browse, freePort } from './scripted_browser.mjs';

const { positionals: [url, user], values: options } = parseArgs({
  allowPositionals: true,
  options: {
    mode: { type: 'string', default: 'auto' },
    tool: { type: 'string', default: 'Calculator_Add' },
    arguments: { type: 'string', default: '{"a": 10, "b": 5}' },
    then: { type: 'string' },
    'metadata-url': { type: 'string' },
  },
});
const inspector = join(import.meta.dirname, 'node_modules/.bin/inspector');
const home = await mkdtemp(join(tmpdir(), 'inspector-'));
const asked = [];

/** Signs the user in, and delivers the redirect to the Inspector. */
async function visit(address) {
  const query = new URL(address).searchParams;
  asked.push(Object.fromEntries(['client_id', 'resource', 'scope'].map((name) => [name, query.get(name)])));
  const landed = await browse(address, user, query.get('redirect_uri'));
  await fetch(landed, { signal: AbortSignal.timeout(20_000) });
}

/** Runs it; returns its exit code and what it prints. */
async function run(...more) {
  // With port 0, it would ask for a redirect to that.
  const callback = `http://127.0.0.1:${await freePort()}/oauth/callback`;
  const metadata = options['metadata-url'] ? ['--client-metadata-url', options['metadata-url']] : [];
  const settings = ['--cli', url, '--transport', 'http', '--protocol-era', options.mode, '--format', 'json', '--callback-url', callback];
  const child = spawn(process.execPath, [inspector, ...settings, ...metadata, ...more], {
    env: {
      PATH: process.env.PATH,
      HOME: home,
      MCP_AUTO_OPEN_ENABLED: 'true', // users may sign in although there is no terminal
      BROWSER: 'true', // the program that it opens the address with, too
      MCP_INSPECTOR_SECRET_STORE: 'file',
    },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: 25_000,
    killSignal: 'SIGKILL',
  });
  const failed = new Promise((done, fail) => { child.on('error', fail); });
  const closed = new Promise((done) => { child.on('close', done); });
  const out = { stdout: '', stderr: '' };
  child.stdout.on('data', (text) => { out.stdout += text; });
  const visits = [];
  createInterface({ input: child.stderr }).on('line', (line) => {
    out.stderr += `${line}\n`;
    const [, address] = line.match(/^Please navigate to: (\S+)/) ?? [];
    if (address) visits.push(visit(address).catch((error) => { child.kill('SIGKILL'); return error; }));
  });
  const code = await Promise.race([closed, failed]);
  const [error] = (await Promise.all(visits)).filter(Boolean);
  if (error) throw error;
  return { code, ...out };
}

async function outcome(tool) {
  const { code, stdout, stderr } = await run('--method', 'tools/call', '--tool-name', tool, '--tool-args-json', options.arguments);
  if (!stdout) return { error: stderr.trim().split('\n').at(-1), code };
  const { result } = JSON.parse(stdout);
  return result.isError ? { failure: result.content[0].text } : { value: result.structuredContent };
}

try {
  const seen = { call: await outcome(options.tool) };
  if (options.then) seen.then = await outcome(options.then);
  console.log(JSON.stringify({ ...seen, asked, registered: !options['metadata-url'] }));
} finally {
  await rm(home, { recursive: true, force: true });
}
