// Checks pages in headless Chromium, light and dark, on a telephone and on a desktop:
// node authorization_pages.mjs OUT NAME=URL …
// Saves each page as OUT.NAME.SCHEME.WIDTH.png, and prints [{"name", "scheme", "width", "problems"}] as one line. A
// problem is a message in the log, such as a violation of the content security policy, a style that is not applied, a
// request besides the page itself, content that is wider than the window, a button that is cut off or too small, an
// element without a visible focus, or a finding of axe-core, which also measures contrast.
import { AXE, launch } from './browser_support.mjs';

const [out, ...pages] = process.argv.slice(2);
const SIZES = [{ width: 375, height: 667, isMobile: true, deviceScaleFactor: 2 }, { width: 800, height: 600 }];
const TAGS = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];

const browser = await launch();
const page = await browser.newPage();
let shown; // the URL of the page that is being checked
let problems = [];
page.on('console', (message) => {
  const isStatus = message.location().url === shown; // pages with a status other than 200 are logged
  if (!isStatus) problems.push(`log: ${message.text()}`);
});
page.on('request', (request) => {
  if (request.url() !== shown) problems.push(`request: ${request.url()}`);
});

/** What a page can find out about its own layout. */
function layoutProblems() {
  const { scrollWidth, clientWidth } = document.documentElement;
  const found = [];
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
  for (const element of await page.$$('a, button')) {
    await page.keyboard.press('Tab');
    const [is, style, width] = await element.evaluate((it) => {
      const { outlineStyle, outlineWidth } = getComputedStyle(it);
      return [it === document.activeElement, outlineStyle, parseFloat(outlineWidth)];
    });
    if (!is || style !== 'solid' || width < 2) found.push(`focus: ${is} ${style} ${width}`);
  }
  return found;
}

async function axeProblems() {
  await page.evaluate(`${AXE}; undefined`);
  const { violations, incomplete } = await page.evaluate((tags) => axe.run(document, { runOnly: tags }), TAGS);
  return [...violations, ...incomplete].map(({ id, nodes }) => `axe: ${id}: ${nodes.map(({ html }) => html.slice(0, 120)).join(' ')}`);
}

const report = [];
for (const [name, url] of pages.map((it) => it.split(/=(.*)/s, 2))) {
  for (const size of SIZES) {
    for (const scheme of ['light', 'dark']) {
      await page.setViewport(size);
      await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: scheme }]);
      [shown, problems] = [url, []];
      await page.goto(url);
      await page.screenshot({ path: `${out}.${name}.${scheme}.${size.width}.png`, fullPage: true });
      problems.push(...await page.evaluate(layoutProblems), ...await axeProblems(), ...await focusProblems());
      report.push({ name, scheme, width: size.width, problems });
    }
  }
}
console.log(JSON.stringify(report));
await browser.close();
