// Checks pages in headless Chromium, light and dark, on a telephone and on a desktop:
// node chromium_pages.mjs OUT NAME=URL …
// Saves each page as OUT.NAME.SCHEME.WIDTH.png, and prints [{"name", "scheme", "width", "problems"}] as one line. A
// problem is a message in the log, such as a violation of the content security policy, a style that is not applied, a
// request besides the page itself, content that is wider than the window, a button that is cut off or too small, an
// element without a visible focus, or a finding of axe-core, which also measures contrast.
import { readFileSync } from 'node:fs';
import { open } from './chromium.mjs';

const [out, ...pages] = process.argv.slice(2);
if (!pages.length) throw new Error('usage: chromium_pages.mjs OUT NAME=URL …');

const SIZES = [{ width: 375, height: 667, mobile: true }, { width: 800, height: 600, mobile: false }];
const TAGS = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];
const axe = readFileSync(new URL('./node_modules/axe-core/axe.min.js', import.meta.url), 'utf8');

const { page, on, evaluate, goTo, screenshot, stop } = await open('chromium_pages', 120);

let shown; // the URL of the page that is being checked
let problems;
on('Log.entryAdded', ({ entry: { source, url, text } }) => {
  const isStatus = source === 'network' && url === shown; // pages with a status other than 200 are logged
  if (!isStatus) problems.push(`log: ${text}`);
});
on('Network.requestWillBeSent', ({ request }) => {
  if (request.url !== shown) problems.push(`request: ${request.url}`);
});
await page('Page.addScriptToEvaluateOnNewDocument', {
  source: `var blocked = []; addEventListener('securitypolicyviolation', (event) => blocked.push(event.violatedDirective))`,
});

/** What a page can find out about its own layout. */
function layoutProblems() {
  const { scrollWidth, clientWidth } = document.documentElement;
  const found = blocked.map((directive) => `blocked: ${directive}`);
  if (scrollWidth > clientWidth) found.push(`width: ${scrollWidth} > ${clientWidth}`);
  for (const style of document.querySelectorAll('style')) if (!style.sheet) found.push('style: not applied');
  for (const element of document.querySelectorAll('body *')) {
    const { left, right, height } = element.getBoundingClientRect();
    if (left < 0 || right > clientWidth + 0.5) found.push(`width: ${element.tagName} from ${left} to ${right}`);
    if (element.tagName === 'BUTTON' && height < 44) found.push(`button: ${height} high`);
  }
  return found;
}

/** Moves the focus to every link and button with the keyboard. */
async function focusProblems() {
  const found = [];
  const elements = await evaluate("document.querySelectorAll('a, button').length");
  for (let at = 0; at < elements; at += 1) {
    for (const type of ['keyDown', 'keyUp']) {
      await page('Input.dispatchKeyEvent', { type, key: 'Tab', code: 'Tab', windowsVirtualKeyCode: 9 });
    }
    const [is, style, width] = await evaluate(`(() => {
      const it = document.querySelectorAll('a, button')[${at}], { outlineStyle, outlineWidth } = getComputedStyle(it);
      return [it === document.activeElement, outlineStyle, parseFloat(outlineWidth)]
    })()`);
    if (!is || style !== 'solid' || width < 2) found.push(`focus: ${at} ${is} ${style} ${width}`);
  }
  return found;
}

async function axeProblems() {
  await evaluate(`${axe}; undefined`);
  const { violations, incomplete } = await evaluate(`axe.run(document, { runOnly: ${JSON.stringify(TAGS)} })`);
  return [...violations, ...incomplete].map(({ id, nodes }) => `axe: ${id}: ${nodes.map(({ html }) => html.slice(0, 120)).join(' ')}`);
}

const report = [];
for (const [name, url] of pages.map((page) => page.split(/=(.*)/s, 2))) {
  for (const size of SIZES) {
    for (const scheme of ['light', 'dark']) {
      [shown, problems] = [url, []];
      await page('Emulation.setDeviceMetricsOverride', { ...size, deviceScaleFactor: size.mobile ? 2 : 1 });
      await page('Emulation.setEmulatedMedia', { features: [{ name: 'prefers-color-scheme', value: scheme }] });
      await goTo(url);
      await screenshot(`${out}.${name}.${scheme}.${size.width}.png`, true);
      problems.push(...await evaluate(`(${layoutProblems})()`), ...await axeProblems(), ...await focusProblems());
      report.push({ name, scheme, width: size.width, problems });
    }
  }
}
console.log(JSON.stringify(report));
stop(0);
