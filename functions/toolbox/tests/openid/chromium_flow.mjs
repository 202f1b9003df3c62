// Logs in and consents in headless Chromium: node chromium_flow.mjs START_URL OUT.png [allow|deny|forge] [login]
// Saves screenshots of the challenge's page (OUT.question.png) and of the flow's last page, and prints
// {"question", "title", "text", "log", "outside"} as one line: "question" is the text of the first page, "text" that of
// the last one. forge: another site submits the first page's form, in a browser that has loaded the first page.
import { open } from './chromium.mjs';

const [start, out, action = 'allow', login = 'alice'] = process.argv.slice(2);
if (!out) throw new Error('usage: chromium_flow.mjs START_URL OUT.png [allow|deny|forge] [login]');

const { page, on, evaluate, navigate, goTo, screenshot, stop } = await open('chromium_flow', 60);

const log = []; // includes violations of a page's content security policy
const outside = [];
on('Log.entryAdded', ({ entry }) => log.push(entry.text));
on('Network.requestWillBeSent', ({ request }) => {
  if (!/^(http:\/\/127\.0\.0\.1[:/]|data:)/.test(request.url)) outside.push(request.url);
});

await goTo(start);
const has = (selector) => evaluate(`!!document.querySelector('${selector}')`);

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
