// Makes the pictures of the documentation: node pictures.mjs '{"figma": URL, "toolbox": URL, "signed": URL, "artifacts": FOLDER}'
// Saves each as FOLDER/picture.NAME.png, and prints {NAME: what it shows}: the texts, the states of the controls, from
// where to where the large parts reach, and a hash of the style. None of these depends on the machine or its fonts.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { Explorer, launch } from './browser_support.mjs';

const settings = JSON.parse(process.argv[2]);
const browser = await launch();
setTimeout(() => { console.error('pictures: not finished within 60 s'); process.exit(1); }, 60_000).unref();
const shown = {};

/** What a page shows below an element. The large parts have the same width with every font. */
function outline(root) {
  const lines = [];
  const state = (it) => {
    const names = ['checked', 'disabled', 'open'].filter((name) => it[name]);
    for (const name of ['aria-current', 'aria-invalid']) if (it.getAttribute(name)) names.push(name);
    return names.map((name) => ` (${name})`).join('');
  };
  const isPart = (it) => it.matches('header, nav, main, form, section');
  const isWhole = (it) => [...it.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.data.trim()) &&
    !it.querySelector('input, select, textarea, button');
  const textOf = (it) => {
    if (it.matches('select')) return it.selectedOptions[0].text;
    if (it.matches('input:not([type=radio]), textarea')) return it.value;
    if (isWhole(it)) return it.innerText;
    return [...it.childNodes].filter((node) => node.nodeType === Node.TEXT_NODE).map((node) => node.data).join(' ');
  };
  const visit = (it, depth) => {
    const box = it.getBoundingClientRect();
    if (it.matches('script, style, noscript, option') || !it.checkVisibility() || box.width <= 1) return;
    const text = textOf(it).trim().replace(/\s+/g, ' ');
    if (isPart(it) || text || state(it) || it.matches('input, select, textarea')) {
      const reach = isPart(it) ? ` from ${Math.round(box.left)} to ${Math.round(box.right)}` : '';
      lines.push(`${'  '.repeat(depth)}${it.getAttribute('role') ?? it.localName}${reach}${state(it)}: ${text}`.replace(/: $/, ''));
    }
    if (!isWhole(it)) for (const child of it.children) visit(child, depth + (isPart(it) ? 1 : 0));
  };
  visit(root, 0);
  return lines;
}

/** Replaces what is different each time. */
const steady = (text) => text
  .replace(/127\.0\.0\.1:\d+/g, '127.0.0.1:PORT')
  .replace(/[\d.]+ ms/g, 'N ms')
  .replace(/Version \d+\.\d+\.\d+/g, 'Version N');

const MARGIN = 16;

/** Makes a picture of the page from the top of these elements to the end of the last one. */
async function picture(name, page, selectors) {
  const style = await page.$$eval('style', (all) => all.map((it) => it.textContent).join(''));
  const lines = [`window: ${page.viewport().width} pixels`, `style: ${createHash('sha256').update(style).digest('hex')}`];
  const boxes = [];
  // From the top, and without the look of what is under the pointer.
  await page.mouse.move(0, 0);
  await page.evaluate(() => scrollTo(0, 0));
  for (const selector of selectors) {
    const element = await page.$(selector);
    assert.ok(element, `${name} has no ${selector}`);
    boxes.push(await element.boundingBox());
    lines.push(...await element.evaluate(outline));
  }
  shown[name] = `${steady(lines.join('\n'))}\n`;
  const x = Math.max(0, Math.min(...boxes.map((it) => it.x)) - MARGIN);
  const y = Math.max(0, Math.min(...boxes.map((it) => it.y)) - MARGIN);
  const right = Math.min(page.viewport().width, Math.max(...boxes.map((it) => it.x + it.width)) + MARGIN);
  const last = boxes.at(-1);
  await page.screenshot({ path: `${settings.artifacts}/picture.${name}.png`, clip: { x, y, width: right - x, height: last.y + last.height + MARGIN - y } });
}

const sizeOf = (width, scale) => ({ width, height: 600, deviceScaleFactor: scale });
const WIDE = 1040;
const NARROW = 560;

const open = (url, scale) => Explorer.open(browser, url, settings.artifacts, sizeOf(WIDE, scale));

/** The list of an API's tools, and a call of one. */
async function explorer() {
  const it = await open(`${settings.figma}/#Figma.GetProjectFiles@1.0.0`, 1);
  await it.fill('project_id', '31415926');
  await it.protocol('Mcp');
  assert.equal((await it.call()).title, 'Succeeded');
  await picture('explorer', it.page, ['header', 'nav', '.head', 'article > form', '.result']);
  await it.close();
}

/** A failure of a tool, with what the model is told. */
async function failure() {
  const it = await open(settings.toolbox, 1.5);
  await it.fill('a', '9007199254740993');
  await it.fill('b', '1');
  assert.equal((await it.call()).title, 'The tool failed');
  await picture('failure', it.page, ['article > form', '.result']);
  await it.close();
}

/** The page on which a user allows a tool to use an account. */
async function consent() {
  const it = await open(`${settings.toolbox}/#Gmail.GetEmails@1.2.0`, 1);
  await it.fill('User id', 'alice@acme.example');
  await it.call();
  const opened = browser.waitForTarget((target) => target.url().includes('/authorization/challenges/'));
  await it.click('Allow access to google');
  const page = await (await opened).page();
  await page.setViewport(sizeOf(NARROW, 1.5));
  await page.waitForSelector('form button');
  await picture('consent', page, ['body']);
  await page.close();
  await it.close();
}

/** The page on which a user lets an agent act for them, before they sign in. */
async function signIn() {
  const redirect = 'http://127.0.0.1:1/callback';
  const registered = await fetch(`${settings.signed}/register`, {
    method: 'POST', headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ client_name: 'An agent', redirect_uris: [redirect], token_endpoint_auth_method: 'none' }),
  });
  const { client_id: client } = await registered.json();
  const challenge = createHash('sha256').update('a'.repeat(43)).digest('base64url');
  const query = new URLSearchParams({
    response_type: 'code', client_id: client, redirect_uri: redirect, code_challenge: challenge, code_challenge_method: 'S256', state: 's',
  });
  const page = await browser.newPage();
  await page.setViewport(sizeOf(NARROW, 1.5));
  await page.goto(`${settings.signed}/authorize?${query}`);
  await picture('sign-in', page, ['body']);
  await page.close();
}

for (const make of [explorer, failure, consent, signIn]) await make();
await browser.close();
console.log(JSON.stringify(shown));
