// A headless Chromium that reaches this machine only, and what the scenarios do with a page.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import assert from 'node:assert/strict';
import puppeteer from 'puppeteer-core';

export const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

export const launch = () => puppeteer.launch({
  executablePath: process.env.CHROMIUM || '/usr/bin/chromium-headless-shell',
  headless: 'shell',
  pipe: true,
  args: [
    '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--no-first-run', '--disable-background-networking',
    '--disable-component-update', '--disable-sync', '--disable-domain-reliability', '--no-proxy-server',
    '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1', // loopback only, for the page and for the browser itself
  ],
});

/** A page of the explorer, with everything that it requests, logs and violates. */
export class Explorer {
  constructor(page, artifacts) {
    Object.assign(this, { page, artifacts, requests: [], problems: [] });
  }

  static async open(browser, url, artifacts, size = { width: 1280, height: 900 }) {
    const page = await browser.newPage();
    page.setDefaultTimeout(10_000);
    await page.setViewport(size);
    const explorer = new Explorer(page, artifacts);
    page.on('request', (request) => explorer.requests.push(request));
    page.on('pageerror', (error) => explorer.problems.push(`error: ${error.message}`));
    page.on('console', (message) => {
      // Chromium logs every response with an error status.
      const isStatus = /^Failed to load resource: the server responded with a status of/.test(message.text());
      if (!isStatus) explorer.problems.push(`${message.type()}: ${message.text()}`);
    });
    await page.evaluateOnNewDocument(() => {
      window.violations = [];
      document.addEventListener('securitypolicyviolation', (event) => window.violations.push(event.violatedDirective));
    });
    await explorer.go(url);
    return explorer;
  }

  async go(url) {
    this.url = new URL(url);
    await this.page.goto(url, { waitUntil: 'networkidle0' });
  }

  async choose(id) {
    await this.page.evaluate((hash) => { location.hash = hash; }, id);
    await this.page.waitForFunction((text) => document.title.startsWith(text), {}, id);
  }

  /** The element that a label is for, within the first match of `scope`. */
  async labelled(text, scope = 'main') {
    const handle = await this.page.evaluateHandle((label, root) => {
      const labels = [...document.querySelectorAll(`${root} label`)];
      const found = labels.find((it) => (it.firstChild?.textContent ?? '').trim() === label && it.htmlFor);
      return found && document.getElementById(found.htmlFor);
    }, text, scope);
    assert.ok(handle.asElement(), `no field is labelled ${text} in ${scope}`);
    return handle.asElement();
  }

  async fill(text, value, scope) {
    const input = await this.labelled(text, scope);
    if (await input.evaluate((it) => it.matches('select'))) {
      const option = await input.evaluate((it, label) => [...it.options].find((o) => o.text.startsWith(label))?.value, value);
      assert.ok(option !== undefined, `${text} has no option ${value}`);
      await input.select(option);
      return;
    }
    await input.evaluate((it) => it.select());
    await input.press('Backspace');
    await input.type(value);
  }

  /** Fills in the form of a tool that adds. */
  async add(a, b) {
    await this.fill('a', a);
    await this.fill('b', b);
  }

  /** Replaces the input as JSON. */
  write(text) {
    return this.page.$eval('.json textarea', (it, json) => {
      it.value = json;
      it.dispatchEvent(new Event('input', { bubbles: true }));
    }, text);
  }

  back() {
    return this.page.evaluate(() => new Promise((done) => {
      addEventListener('hashchange', done, { once: true });
      history.back();
    }));
  }

  async click(text, scope = 'main') {
    const handle = await this.page.evaluateHandle((name, root) => [...document.querySelectorAll(`${root} button`)]
      .find((it) => it.textContent === name || it.getAttribute('aria-label') === name), text, scope);
    assert.ok(handle.asElement(), `there is no button ${text}`);
    await handle.asElement().click();
  }

  protocol(name) {
    return this.page.click(`input[type=radio][value=${name}]`);
  }

  /** Calls, and returns the title and the text of the result. */
  async call() {
    await this.page.evaluate(() => document.querySelector('.output').replaceChildren());
    await this.page.click('button[type=submit]');
    return this.result();
  }

  async result(title) {
    await this.page.waitForFunction((expected) => {
      const text = document.querySelector('.output:not([aria-busy]) h3')?.textContent;
      return text && (!expected || text === expected);
    }, {}, title);
    return this.page.evaluate(() => ({
      title: document.querySelector('.result h3').textContent,
      text: document.querySelector('.result').innerText,
      value: document.querySelector('.result [aria-label=Value]')?.textContent,
      focused: document.activeElement.id,
    }));
  }

  /** The result's value as JSON. */
  async value() {
    const { value, text } = await this.call();
    assert.ok(value, text);
    return JSON.parse(value);
  }

  async copy(kind) {
    const select = await this.labelled('Copy as');
    await select.select(kind);
    return this.page.$eval('[aria-label="Text to copy"]', (it) => it.textContent);
  }

  json() {
    return this.page.$eval('.json textarea', (it) => JSON.parse(it.value));
  }

  /** The error at a field, as assistive technology finds it. */
  async errorAt(text, scope) {
    const input = await this.labelled(text, scope);
    return input.evaluate((it) => ({
      isInvalid: it.getAttribute('aria-invalid') === 'true',
      isFocused: document.activeElement === it,
      text: it.getAttribute('aria-describedby').split(' ').map((id) => document.getElementById(id).textContent).at(-1),
    }));
  }

  /** No violation of axe's rules, no horizontal scrolling. A name saves a picture. */
  async check(state, name) {
    if (name) await this.page.screenshot({ path: `${this.artifacts}/explorer.${name}.png`, fullPage: true });
    await this.page.evaluate(AXE);
    const violations = await this.page.evaluate(async () => {
      const { violations: found } = await window.axe.run(document, { resultTypes: ['violations'] });
      return found.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' ')}`);
    });
    assert.deepEqual(violations, [], `axe-core: ${state}`);
    const [content, window_] = await this.page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
    assert.ok(content <= window_, `${state} is ${content} px wide, in a window of ${window_} px`);
  }

  /** The page is quiet: no errors, no violations, no request to another origin. */
  async close() {
    const violations = await this.page.evaluate(() => window.violations);
    assert.deepEqual([this.problems, violations], [[], []]);
    const others = this.requests.map((request) => request.url()).filter((url) => !url.startsWith('data:') && new URL(url).origin !== this.url.origin);
    assert.deepEqual(others, []);
    await this.page.close();
  }
}
