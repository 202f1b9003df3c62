// Logs in and consents in headless Chromium: node chromium_flow.mjs START_URL OUT.png [allow|deny|forge] [login]
// Saves screenshots of the challenge's page (OUT.question.png) and of the flow's last page, and prints
// {"question", "title", "text", "log", "outside"} as one line: "question" is the text of the first page, "text" that of
// the last one. forge: another site submits the first page's form, in a browser that has loaded the first page.
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
  '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1', // loopback only, for the page and for the browser itself
  '--window-size=800,600', `--user-data-dir=${profile}`, '--remote-debugging-pipe', 'about:blank',
], { stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'] });

// The DevTools protocol over the pipe: JSON messages, each terminated by a NUL.
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
browser.stdio[3].on('error', () => {}); // the exit handler reports a browser that ended

function fail(message) {
  console.error(`chromium_flow: ${message}`);
  stop(1);
  return new Promise(() => {}); // never settles: the caller waits until the process ends
}

function stop(code) {
  process.exitCode ??= code;
  browser.removeAllListeners('exit');
  if (!browser.pid || browser.exitCode !== null || browser.signalCode !== null) process.exit();
  browser.once('exit', () => process.exit());
  call('Browser.close'); // also ends the browser's children, which a signal would leave behind
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

const log = []; // includes violations of a page's content security policy
const outside = [];
on('Log.entryAdded', ({ entry }) => log.push(entry.text));
on('Network.requestWillBeSent', ({ request }) => {
  if (!/^(http:\/\/127\.0\.0\.1[:/]|data:)/.test(request.url)) outside.push(request.url);
});
for (const domain of ['Page', 'Network', 'Log']) await page(`${domain}.enable`);

/** Runs a step that opens another page, and waits until that page is loaded. */
async function navigate(step) {
  const loaded = new Promise((done) => { on('Page.loadEventFired', done); });
  await step();
  await loaded;
}

await navigate(async () => {
  const { errorText } = await page('Page.navigate', { url: start });
  if (errorText) await fail(`${start}: ${errorText}`);
});
const has = (selector) => evaluate(`!!document.querySelector('${selector}')`);
const screenshot = async (file) => {
  const { data } = await page('Page.captureScreenshot', { format: 'png' });
  writeFileSync(file, Buffer.from(data, 'base64'));
};

const question = await evaluate('document.body.innerText');
await screenshot(out.replace(/\.png$/, '.question.png'));
if (action === 'forge') {
  const form = await evaluate("document.querySelector('input[name=form]').value");
  const site = `<form method="post" action="${start}"><input name="form" value="${form}"></form>`;
  await navigate(() => page('Page.navigate', { url: `data:text/html,${encodeURIComponent(site)}` }));
  await navigate(() => evaluate('document.forms[0].submit()'));
} else {
  await navigate(() => evaluate("document.querySelector('form button').click()"));
}
while (await has('button[name=action]')) {
  const signIn = await has('input[name=login]');
  if (signIn) {
    await evaluate(`for (const [name, value] of ${JSON.stringify([['login', login], ['password', 'x']])})
      document.querySelector('input[name=' + name + ']').value = value`);
  }
  const value = signIn ? 'allow' : action;
  await navigate(() => evaluate(`document.querySelector('button[name=action][value=${value}]').click()`));
}

await screenshot(out);
const [title, text] = await evaluate('[document.title, document.body.innerText]');
console.log(JSON.stringify({ question, title, text, log, outside }));
stop(0);
