// Logs in and consents in headless Chromium: node chromium_flow.mjs START_URL OUT.png [allow|deny|forge] [login]
// Saves a screenshot of the page that asks (OUT.question.png) and one of the page where the flow ends, and prints
// {"question", "title", "text", "log", "outside"} as one line: the text of the first page, and of the last one.
// forge: in a browser that has seen the first page, another site sends its form.
// CHROMIUM names the browser; chromium-headless-shell (Debian) is enough. No npm packages.
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const [start, out, action = 'allow', login = 'alice'] = process.argv.slice(2);
if (!out) throw new Error('usage: chromium_flow.mjs START_URL OUT.png [allow|deny|forge] [login]');

const profile = mkdtempSync(join(tmpdir(), 'chromium-flow-'));
const browser = spawn(process.env.CHROMIUM || 'chromium-headless-shell', [
  '--headless', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--hide-scrollbars', '--no-first-run',
  '--disable-background-networking', '--disable-component-update', '--disable-default-apps', '--disable-extensions',
  '--disable-sync', '--disable-domain-reliability', '--metrics-recording-only', '--no-proxy-server',
  '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1', // whatever the page or the browser wants: loopback only
  '--window-size=800,600', `--user-data-dir=${profile}`, '--remote-debugging-pipe', 'about:blank',
], { stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'] });

// The DevTools protocol over the pipe: JSON messages, each ended by a NUL.
let lastId = 0;
let received = '';
const pending = new Map();
const listeners = new Map();
const call = (method, params = {}, sessionId = undefined) => new Promise((done) => {
  lastId += 1;
  pending.set(lastId, done);
  browser.stdio[3].write(`${JSON.stringify({ id: lastId, method, params, sessionId })}\0`);
});

browser.on('error', (error) => fail(error.message));
browser.on('exit', () => fail('the browser ended early'));
browser.stdio[3].on('error', () => {}); // a browser that ended is reported by its exit

function fail(why) {
  console.error(`chromium_flow: ${why}`);
  stop(1);
  return new Promise(() => {}); // for the caller to wait on until the process ends
}

function stop(code) {
  process.exitCode ??= code;
  browser.removeAllListeners('exit');
  if (!browser.pid || browser.exitCode !== null || browser.signalCode !== null) process.exit();
  browser.once('exit', () => process.exit());
  call('Browser.close'); // lets it end its own children, where a signal would leave them
  setTimeout(() => browser.kill('SIGKILL'), 5000);
}
process.on('exit', () => rmSync(profile, { recursive: true, force: true, maxRetries: 5 }));
setTimeout(() => fail('no final page within 60 s'), 60_000);

browser.stdio[4].setEncoding('utf8').on('data', (chunk) => {
  const messages = (received + chunk).split('\0');
  received = messages.pop();
  for (const text of messages) {
    const { id, method, params, result, error } = JSON.parse(text);
    if (id) pending.get(id)(error ? Promise.reject(new Error(error.message)) : result);
    else for (const listener of listeners.get(method) ?? []) listener(params);
  }
});
const on = (method, listener) => listeners.set(method, [...(listeners.get(method) ?? []), listener]);

const { targetInfos } = await call('Target.getTargets');
const { targetId } = targetInfos.find(({ type }) => type === 'page');
const { sessionId } = await call('Target.attachToTarget', { targetId, flatten: true });
const page = (method, params) => call(method, params, sessionId);
const evaluate = async (expression) => {
  const { result, exceptionDetails } = await page('Runtime.evaluate', { expression, returnByValue: true });
  if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
  return result.value;
};

const log = []; // violations of a page's content security policy end up here too
const outside = [];
on('Log.entryAdded', ({ entry }) => log.push(entry.text));
on('Network.requestWillBeSent', ({ request }) => {
  if (!/^(http:\/\/127\.0\.0\.1[:/]|data:)/.test(request.url)) outside.push(request.url);
});
for (const domain of ['Page', 'Network', 'Log']) await page(`${domain}.enable`);

/** Does what leads to another page and waits until that is loaded. */
async function leads(deed) {
  const loaded = new Promise((done) => { on('Page.loadEventFired', done); });
  await deed();
  await loaded;
}

await leads(async () => {
  const { errorText } = await page('Page.navigate', { url: start });
  if (errorText) await fail(`${start}: ${errorText}`);
});
const has = (selector) => evaluate(`!!document.querySelector('${selector}')`);
const pictured = async (file) => {
  const { data } = await page('Page.captureScreenshot', { format: 'png' });
  writeFileSync(file, Buffer.from(data, 'base64'));
};

const question = await evaluate('document.body.innerText');
await pictured(out.replace(/\.png$/, '.question.png'));
if (action === 'forge') {
  const form = await evaluate("document.querySelector('input[name=form]').value");
  const site = `<form method="post" action="${start}"><input name="form" value="${form}"></form>`;
  await leads(() => page('Page.navigate', { url: `data:text/html,${encodeURIComponent(site)}` }));
  await leads(() => evaluate('document.forms[0].submit()'));
} else {
  await leads(() => evaluate("document.querySelector('form button').click()"));
}
while (await has('button[name=action]')) {
  const signIn = await has('input[name=login]');
  if (signIn) {
    await evaluate(`for (const [name, value] of ${JSON.stringify([['login', login], ['password', 'x']])})
      document.querySelector('input[name=' + name + ']').value = value`);
  }
  const value = signIn ? 'allow' : action;
  await leads(() => evaluate(`document.querySelector('button[name=action][value=${value}]').click()`));
}

await pictured(out);
const [title, text] = await evaluate('[document.title, document.body.innerText]');
console.log(JSON.stringify({ question, title, text, log, outside }));
stop(0);
