// Signs in and allows access in headless Chromium: node authorization_flow.mjs START_URL OUT.png [allow|deny|keyboard]
// Saves screenshots of the challenge's page (OUT.question.png) and of the flow's last page, and prints
// {"question", "title", "text", "log", "outside"} as one line: "question" is the text of the first page, "text" that of
// the last one. keyboard: the first page's button is reached and pressed with the keyboard.
import { launch } from './browser_support.mjs';

const [start, out, action = 'allow'] = process.argv.slice(2);
const browser = await launch();
const page = await browser.newPage();
const log = []; // includes violations of a page's content security policy
const outside = [];
page.on('console', (message) => log.push(message.text()));
page.on('request', (request) => {
  if (!/^(http:\/\/127\.0\.0\.1[:/]|data:)/.test(request.url())) outside.push(request.url());
});
const text = () => page.evaluate(() => document.body.innerText);
const press = (selector) => Promise.all([page.waitForNavigation(), page.click(selector)]);

await page.goto(start);
const question = await text();
await page.screenshot({ path: out.replace(/\.png$/, '.question.png') });
if (action === 'keyboard') {
  await page.keyboard.press('Tab');
  await Promise.all([page.waitForNavigation(), page.keyboard.press('Enter')]);
} else {
  await press('form button');
}
while (await page.$('button[name=action]')) {
  const signIn = await page.$('input[name=login]');
  if (signIn) {
    await page.type('input[name=login]', 'alice');
    await page.type('input[name=password]', 'x');
  }
  await press(`button[name=action][value=${signIn || action === 'keyboard' ? 'allow' : action}]`);
}
await page.screenshot({ path: out });
console.log(JSON.stringify({ question, title: await page.title(), text: await text(), log, outside }));
await browser.close();
