// Headless Chromium, controlled with the DevTools protocol over a pipe. CHROMIUM names the browser;
// chromium-headless-shell (Debian) is enough. No npm packages.
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Starts a browser with one page. The process ends with status 1 after `seconds`, or if the browser ends. */
export async function open(name, seconds) {
  const profile = mkdtempSync(join(tmpdir(), `${name}-`));
  const browser = spawn(process.env.CHROMIUM || 'chromium-headless-shell', [
    '--headless', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--hide-scrollbars', '--no-first-run',
    '--disable-background-networking', '--disable-component-update', '--disable-default-apps', '--disable-extensions',
    '--disable-sync', '--disable-domain-reliability', '--metrics-recording-only', '--no-proxy-server',
    '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1', // loopback only, for the page and for the browser itself
    '--window-size=800,600', `--user-data-dir=${profile}`, '--remote-debugging-pipe', 'about:blank',
  ], { stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'] });

  // JSON messages, each terminated by a NUL.
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
    console.error(`${name}: ${message}`);
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
  process.on('uncaughtException', (error) => fail(error.stack));
  setTimeout(() => fail(`not finished within ${seconds} s`), seconds * 1000);

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
  for (const domain of ['Page', 'Network', 'Log']) await page(`${domain}.enable`);

  /** The value of an expression or, of a promise, its result. */
  const evaluate = async (expression) => {
    const { result, exceptionDetails } = await page('Runtime.evaluate', { expression, returnByValue: true, awaitPromise: true });
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
    return result.value;
  };

  /** Runs a step that opens another page, and waits until that page is loaded. */
  const navigate = async (step) => {
    const loaded = new Promise((done) => { on('Page.loadEventFired', done); });
    await step();
    await loaded;
  };

  const goTo = (url) => navigate(async () => {
    const { errorText } = await page('Page.navigate', { url });
    if (errorText) await fail(`${url}: ${errorText}`);
  });

  /** Saves what is visible, or the whole page. */
  const screenshot = async (file, whole = false) => {
    const { cssContentSize: { width, height } } = await page('Page.getLayoutMetrics');
    const area = whole ? { captureBeyondViewport: true, clip: { x: 0, y: 0, width, height, scale: 1 } } : {};
    const { data } = await page('Page.captureScreenshot', { format: 'png', ...area });
    writeFileSync(file, Buffer.from(data, 'base64'));
  };

  return { page, on, evaluate, navigate, goTo, screenshot, stop };
}
