// Drives the explorer's page in headless Chromium: node explorer.mjs '{"toolbox": URL, "faults": URL, "keyed": URL,
// "base": URL, "signed": URL, "key": …, "token": …, "artifacts": FOLDER}' [SCENARIO]. Prints the copies that it made as
// one line of JSON: the caller runs them. CHROMIUM names the browser; chromium-headless-shell (Debian) is enough.
import assert from 'node:assert/strict';
import { Explorer, launch } from './browser_support.mjs';
import { schemaScenarios } from './schemas.mjs';

const settings = JSON.parse(process.argv[2]);
const browser = await launch();
setTimeout(() => { console.error('explorer: not finished within 150 s'); process.exit(1); }, 150_000).unref();
const open = (url, size) => Explorer.open(browser, url, settings.artifacts, size);
const copies = {};

const SCENARIOS = {
  ...schemaScenarios((address) => open(`${settings.toolbox}/${address}`)),

  async list() {
    const explorer = await open(settings.toolbox);
    await explorer.check('the list', 'list');
    assert.equal(await explorer.page.title(), 'Toolbox');
    assert.deepEqual(await explorer.page.$$eval('#list h2', (all) => all.map((it) => it.textContent)),
      ['Calculator', 'Doorbell', 'System', 'Gmail', 'SMS']);
    await explorer.page.type('#search', 'numbers ADD');
    assert.deepEqual(await explorer.page.$$eval('#list a', (all) => all.map((it) => it.hash)), ['#Calculator.Add@10.0.0']);
    assert.equal(await explorer.page.$eval('#found', (it) => it.textContent), '1 tool found');
    await explorer.close();
  },

  async opensOnATool() {
    const first = 'Calculator.Add@10.0.0';
    const named = await open(`${settings.toolbox}/#${first}`);
    const entries = await named.page.evaluate(() => history.length);
    await named.close();
    const explorer = await open(settings.toolbox);
    const { page } = explorer;
    const shown = () => page.evaluate(() => ({
      tool: document.querySelector('article h2')?.textContent,
      marked: [...document.querySelectorAll('#list [aria-current=true]')].map((it) => it.hash),
      address: location.href,
      focused: document.activeElement.id,
    }));
    const opened = { tool: 'Calculator.Add', marked: [`#${first}`], address: `${settings.toolbox}/`, focused: '' };
    assert.deepEqual(await shown(), opened);
    assert.equal(await page.evaluate(() => history.length), entries, 'there is nothing to go back to');
    await explorer.choose('SMS.Send@0.1.2');
    await explorer.back();
    assert.deepEqual(await shown(), { ...opened, focused: 'tool' });
    assert.equal(await page.title(), 'Toolbox');
    await explorer.add('1', '2');
    await explorer.choose(first);
    assert.equal(await explorer.value(), 3, 'to choose the tool that is shown does not lose its input');
    await page.setViewport({ width: 375, height: 740 });
    await explorer.go(settings.toolbox);
    assert.equal(await page.$('article'), null, 'a long list would hide the tool');
    await page.setViewport({ width: 1280, height: 900 });
    await page.waitForSelector('article');
    assert.deepEqual(await shown(), opened);
    await explorer.close();
  },

  async keyboard() {
    const explorer = await open(settings.toolbox);
    const { keyboard } = explorer.page;
    const focused = () => explorer.page.evaluate(() => {
      const it = document.activeElement;
      return it.labels?.[0]?.firstChild.textContent.trim() || it.id || it.textContent;
    });
    const tabTo = async (name) => {
      for (let count = 0; count < 30; count += 1) {
        await keyboard.press('Tab');
        if ((await focused()).startsWith(name)) return;
      }
      assert.fail(`Tab does not lead to ${name}`);
    };
    await tabTo('skip');
    await tabTo('Search tools');
    await tabTo('Add');
    await keyboard.press('Enter');
    await explorer.page.waitForFunction(() => document.activeElement.id === 'tool');
    await tabTo('a');
    await keyboard.type('2.5');
    await tabTo('b');
    await keyboard.type('40');
    await explorer.check('the form', 'form');
    await keyboard.down('Control');
    await keyboard.press('Enter');
    await keyboard.up('Control');
    const { title, value, focused: at } = await explorer.result();
    assert.deepEqual([title, value, at], ['Succeeded', '42.5', 'result']);
    assert.match(await explorer.page.$eval('#status', (it) => it.textContent), /^Succeeded/);
    await explorer.check('a result', 'result');
    await explorer.close();
  },

  async protocolsAndCopies() {
    const explorer = await open(`${settings.toolbox}/#Calculator.Add@10.0.0`);
    await explorer.add('20', '22');
    for (const protocol of ['Oxp', 'Mcp', 'OpenTool']) {
      await explorer.protocol(protocol);
      assert.equal(await explorer.value(), 42, protocol);
      const sent = explorer.requests.findLast((request) => request.method() === 'POST');
      assert.equal(new URL(sent.url()).pathname, { Oxp: '/tools/call', Mcp: '/mcp', OpenTool: '/opentool/call' }[protocol]);
      copies[protocol] = {};
      for (const kind of ['curl', 'python', 'event']) copies[protocol][kind] = await explorer.copy(kind);
    }
    copies.settings = await explorer.copy('settings');
    copies.claude = await explorer.copy('claude');
    await (await explorer.labelled('Version')).select('Calculator.Add@1.0.0');
    await explorer.page.waitForFunction(() => document.title.startsWith('Calculator.Add@1.0.0'));
    assert.equal(await explorer.page.$eval('input[value=Mcp]', (it) => it.disabled), true, 'MCP calls the newest version');
    assert.equal(await explorer.page.$eval('.result', (it) => it.textContent).catch(() => null), null);
    await explorer.close();
  },

  async nestedInput() {
    const explorer = await open(`${settings.faults}/#Orders.Place@2.0.0`);
    await explorer.click('Add item to lines');
    await explorer.fill('delivery', 'parcel');
    await explorer.fill('name', 'Ada');
    await explorer.fill('number', 'ab1');
    await explorer.fill('account', '12345678901234567890');
    await explorer.fill('article', "O'Hara's \"tea\"", '.item');
    await explorer.fill('quantity', '100', '.item');
    await explorer.fill('street', 'High Street 1', '.branches');
    await explorer.fill('city', 'Zürich', '.branches');
    await explorer.fill('prepaid', 'true');
    await explorer.fill('labels', '{"colour": "red"}');
    for (const [protocol, status] of [['Oxp', 422], ['Mcp', 200]]) {
      await explorer.protocol(protocol);
      const rejected = await explorer.call();
      assert.match(rejected.text, new RegExp(`Status ${status}[^]*2 messages above, at the fields`));
      const error = await explorer.errorAt('number');
      assert.ok(error.isInvalid && error.isFocused && error.text.startsWith('Must match the pattern'), JSON.stringify(error));
      assert.equal((await explorer.errorAt('quantity', '.item')).text, 'Must be at most 99');
    }
    await explorer.check('errors', 'errors');
    await explorer.protocol('Oxp');
    await explorer.fill('number', 'AB1234');
    await explorer.fill('quantity', '3', '.item');
    const { value } = await explorer.call();
    assert.match(value, /"account": 12345678901234567890\n/, 'no digit is lost');
    const order = JSON.parse(value);
    assert.deepEqual([order.customer.number, order.lines, order.delivery, order.prepaid, order.labels, 'urgency' in order], [
      'AB1234', [{ article: "O'Hara's \"tea\"", quantity: 3 }], { kind: 'parcel', street: 'High Street 1', city: 'Zürich' },
      true, { colour: 'red' }, false,
    ]);
    copies.nested = { curl: await explorer.copy('curl'), python: await explorer.copy('python'), value };
    await explorer.close();
  },

  async formAndJson() {
    const explorer = await open(`${settings.faults}/#Orders.Place@2.0.0`);
    const order = {
      customer: { name: 'Bob', number: 'CD5678' },
      lines: [{ article: 'cup', quantity: 1 }, { article: 'tea', quantity: 2 }],
      delivery: { kind: 'pickup', shop: 'Basel' }, prepaid: false, urgency: 'high', discount: 7.5,
      recipient: { name: 'Eve', number: 'EF9012' },
    };
    const json = await explorer.page.$('.json textarea');
    await explorer.write(JSON.stringify(order));
    const shown = async (label, scope) => (await explorer.labelled(label, scope)).evaluate((it) => it.selectedOptions?.[0].text ?? it.value);
    assert.deepEqual([await shown('name'), await shown('shop'), await shown('urgency'), await shown('discount'), await shown('name', '.optional')],
      ['Bob', 'Basel', 'high', '7.5', 'Eve']);
    await explorer.click('Remove item 1 of lines');
    await explorer.click('Remove recipient');
    await explorer.fill('discount', '');
    await explorer.fill('urgency', 'Not set');
    const { recipient, discount, urgency, ...rest } = order;
    assert.deepEqual(await explorer.json(), { ...rest, lines: [order.lines[1]] });
    await explorer.write('{"a": ');
    await explorer.page.click('button[type=submit]');
    const state = await json.evaluate((it) => [it.getAttribute('aria-invalid'), document.activeElement === it]);
    assert.deepEqual(state, ['true', true]);
    assert.equal(explorer.requests.filter((request) => request.method() === 'POST').length, 0);
    await explorer.close();
  },

  async replaysAndFailures() {
    const explorer = await open(`${settings.faults}/#Orders.Place@2.0.0`);
    const order = { customer: { name: 'Ada', number: 'AB1234' }, lines: [{ article: 'cup', quantity: 1 }], delivery: { kind: 'pickup', shop: 'B' }, prepaid: true };
    await explorer.write(JSON.stringify(order));
    for (const protocol of ['Oxp', 'Mcp', 'OpenTool']) {
      await explorer.protocol(protocol);
      await explorer.page.click('input[value=new]');
      assert.doesNotMatch((await explorer.call()).text, /replay/);
      assert.doesNotMatch((await explorer.call()).text, /replay/);
      await explorer.page.click('input[value=kept]');
      await explorer.fill('Call id', `kept-${protocol}`);
      assert.doesNotMatch((await explorer.call()).text, /replay/);
      assert.match((await explorer.call()).text, /a replay of the first call with this id/);
    }
    await explorer.page.click('input[value=new]');
    await explorer.protocol('Oxp');
    await explorer.write(JSON.stringify({ ...order, customer: { name: 'Nobody', number: 'AB1234' } }));
    const { title, text } = await explorer.call();
    assert.equal(title, 'The tool failed');
    assert.match(text, /The customer is unknown[^]*For the model: Ask for the customer's name\.[^]*after 1\.5 seconds/);
    await explorer.check('a failure', 'failure');
    await explorer.close();
  },

  async hostileTexts() {
    const explorer = await open(`${settings.faults}/#Hostile.Echo@1.0.0`);
    assert.match(await explorer.page.$eval('.description', (it) => it.textContent), /^<img src=x onerror=/);
    for (const protocol of ['Oxp', 'Mcp', 'OpenTool']) {
      await explorer.protocol(protocol);
      await explorer.fill('__proto__', '<b>x</b>');
      const { value } = await explorer.call();
      assert.match(value, /"__proto__": "<b>x<\/b>"/);
      await explorer.fill('__proto__', 'fail');
      assert.match((await explorer.call()).text, /<img src=x onerror=/);
      for (const kind of ['curl', 'python', 'event']) await explorer.copy(kind);
    }
    const state = await explorer.page.evaluate(() => [String(window.hostile), document.images.length, document.scripts.length, document.querySelectorAll('svg, b').length]);
    assert.deepEqual(state, ['undefined', 0, 1, 0]);
    await explorer.close();
  },

  async contentAndQuestions() {
    const explorer = await open(`${settings.faults}/#Pictures.Show@1.0.0`);
    for (const protocol of ['Mcp', 'Oxp']) {
      await explorer.protocol(protocol);
      const { text } = await explorer.call();
      assert.match(text, /A picture of one point[^]*audio\/wav, 4 bytes[^]*application\/pdf, 8 bytes/);
      assert.equal(await explorer.page.$eval('.result img', (it) => it.naturalWidth), 1, protocol);
    }
    await explorer.protocol('Mcp');
    await explorer.call();
    await explorer.check('content', 'content');
    await explorer.choose('Files.Delete@1.0.0');
    await explorer.protocol('Mcp');
    await explorer.fill('file', 'a.txt');
    assert.equal((await explorer.call()).title, 'The tool has a question');
    await explorer.check('a question', 'question');
    await explorer.fill('confirm', 'true', '.question');
    await explorer.click('Answer');
    assert.equal((await explorer.result('Succeeded')).value, '"a.txt is deleted"');
    await explorer.call();
    await explorer.click('Decline');
    assert.equal((await explorer.result('Succeeded')).value, '"Nothing was deleted"');
    await explorer.close();
  },

  async resourcesAndPrompts() {
    const explorer = await open(settings.resources);
    const toolkits = await explorer.page.$$eval('#list h2', (all) => all.map((it) => it.textContent));
    assert.deepEqual(toolkits.slice(-2), ['Resources', 'Prompts'], 'they are below the tools');
    await explorer.choose('Resources.template_data@1.0.0');
    await explorer.fill('id', 'a b');
    assert.match((await explorer.call()).text, /Data for ID: a b/);
    await explorer.choose('Resources.static_binary@1.0.0');
    await explorer.call();
    assert.equal(await explorer.page.$eval('.result img', (it) => it.naturalWidth), 1);
    await explorer.choose('Prompts.test_prompt_with_arguments@1.0.0');
    await explorer.fill('arg1', 'one');
    await explorer.fill('arg2', 'two');
    assert.match((await explorer.call()).text, /Prompt with arguments: arg1='one', arg2='two'/);
    await explorer.check('a prompt', 'prompt');
    await explorer.close();
  },

  async challenges() {
    for (const protocol of ['Oxp', 'Mcp']) {
      const explorer = await open(`${protocol === 'Mcp' ? settings.signed : settings.toolbox}/#Gmail.GetEmails@1.2.0`);
      if (protocol === 'Mcp') {
        await explorer.fill('API key or access token', settings.token);
        await explorer.click('Continue');
        await explorer.page.waitForSelector('article');
        await explorer.protocol('Mcp');
      } else {
        const { title } = await explorer.call();
        assert.equal(title, 'The call was rejected');
        assert.equal((await explorer.errorAt('User id')).text, 'The tool needs it.');
        await explorer.fill('User id', 'user-oxp');
      }
      await explorer.call();
      await explorer.check('a challenge', `challenge.${protocol}`);
      const opened = browser.waitForTarget((target) => target.url().includes('/authorization/challenges/'));
      await explorer.click('Allow access to google');
      await allowAt(await (await opened).page());
      const { value } = await explorer.result('Succeeded');
      assert.match(value, /Welcome to Gmail/);
      await explorer.close();
    }
  },

  /** What a mistake or a stranger might let a server answer. */
  async strangeAnswers() {
    const explorer = await open(`${settings.toolbox}/#Gmail.GetEmails@1.2.0`);
    const { page } = explorer;
    let answer;
    await page.setRequestInterception(true);
    page.on('request', (request) => (request.method() === 'POST'
      ? request.respond({ contentType: 'application/json', ...answer }) : request.continue()));
    await page.evaluate(() => {
      window.open = (...given) => { window.opened = given; };
      const create = URL.createObjectURL;
      URL.createObjectURL = (blob) => { window.saved = blob.type; return create(blob); };
    });
    const challenge = (url, check) => {
      const authorization = [{ id: 'google', url, check_url: check }];
      answer = { status: 400, body: JSON.stringify({ message: 'No access', missing_requirements: { authorization } }) };
    };
    const buttons = () => page.$$eval('.challenge button', (all) => all.filter((it) => it.checkVisibility()).map((it) => it.textContent));
    await explorer.protocol('Oxp');
    for (const url of ['javascript:window.hostile=1', 'data:text/html,x', 'file:///etc/passwd', 'ftp://a.example/', '/x', '', null]) {
      challenge(url, `${settings.toolbox}/authorization/challenges/1`);
      assert.match((await explorer.call()).text, /is not a web address/, String(url));
      assert.deepEqual(await buttons(), [], String(url));
    }
    // The page cannot ask another origin whether access is allowed.
    challenge('https://idp.example/start', 'https://tools.example/authorization/challenges/1');
    await explorer.call();
    assert.deepEqual(await buttons(), ['Allow access to google']);
    const before = explorer.requests.length;
    await explorer.click('Allow access to google');
    assert.deepEqual(await page.evaluate(() => window.opened), ['https://idp.example/start', '_blank', 'noopener,noreferrer']);
    assert.deepEqual(await buttons(), ['Allow access to google', 'I have allowed it']);
    assert.equal(explorer.requests.length, before, 'nothing was asked');
    answer = { body: JSON.stringify({ success: true, value: 1 }) };
    await explorer.click('I have allowed it');
    assert.equal((await explorer.result('Succeeded')).value, '1');
    // Bytes of other types are saved as nothing that a browser shows.
    await explorer.protocol('Mcp');
    const data = btoa('<svg onload="window.hostile=2"/>');
    const kinds = ['image/svg+xml', 'text/html', 'application/pdf', 'image/png;x'];
    const content = [...kinds.map((mimeType) => ({ type: 'image', data, mimeType })), { type: 'image', data: '%', mimeType: 'image/png' }];
    answer = { body: JSON.stringify({ jsonrpc: '2.0', id: 1, result: { content } }) };
    assert.match((await explorer.call()).text, /Content 5 \(image\/png\) cannot be shown/);
    assert.equal(await page.$$eval('.result img', (all) => all.length), 0);
    for (const [index, kind] of kinds.entries()) {
      await explorer.click(`Save content ${index + 1}`);
      assert.equal(await page.evaluate(() => window.saved), 'application/octet-stream', kind);
    }
    assert.equal(await page.evaluate(() => window.hostile), undefined);
    await explorer.close();
  },

  async credentials() {
    const secret = 'marked-secret-of-twilio';
    const explorer = await open(settings.keyed);
    const contents = async () => explorer.page.evaluate(() => JSON.stringify([
      document.documentElement.outerHTML, [...document.querySelectorAll('input:not([type=password]), textarea')].map((it) => it.value),
      location.href, { ...localStorage }, { ...sessionStorage }, document.cookie, history.state, window.name,
      performance.getEntries().map((it) => it.name),
    ]));
    assert.match(await explorer.page.$eval('h2', (it) => it.textContent), /requires credentials/);
    assert.equal(await explorer.page.title(), 'Tool explorer');
    await explorer.check('the form for a credential', 'credential');
    const field = await explorer.labelled('API key or access token');
    assert.deepEqual(await field.evaluate((it) => [it.type, it.autocomplete, it.name]), ['password', 'new-password', '']);
    await explorer.fill('API key or access token', 'a-wrong-key');
    await explorer.click('Continue');
    await explorer.page.waitForFunction(() => document.querySelector('#credential-error')?.textContent.includes('does not accept'));
    await explorer.fill('API key or access token', settings.key);
    await (await explorer.labelled('API key or access token')).press('Enter');
    await explorer.page.waitForSelector('#list a');
    assert.equal(await explorer.page.evaluate(() => document.activeElement.id), 'tool', 'the first tool has the focus');
    await explorer.choose('Calculator.Add@10.0.0');
    await explorer.choose('SMS.Send@0.1.2');
    await explorer.fill('to', '+15005550006');
    await explorer.fill('message', 'Hi');
    await explorer.fill('Secret TWILIO_API_KEY', secret);
    await explorer.call();
    const sent = explorer.requests.findLast((request) => request.method() === 'POST');
    assert.equal(sent.headers().authorization, `Bearer ${settings.key}`);
    assert.match(sent.postData(), new RegExp(secret));
    await explorer.page.$$eval('details', (all) => all.forEach((it) => { it.open = true; }));
    const { text } = await explorer.result();
    assert.match(text, /authorization: Bearer \(hidden\)[^]*VALUE_OF_TWILIO_API_KEY/);
    for (const kind of ['curl', 'python', 'settings', 'claude', 'event']) {
      const copy = await explorer.copy(kind);
      assert.match(copy, /YOUR_KEY/, kind);
      const all = await contents();
      for (const marked of [settings.key, secret]) assert.ok(!all.includes(marked) && !copy.includes(marked), `${kind} ${marked}`);
    }
    await explorer.click('Use other credentials', 'header');
    assert.equal(await explorer.page.$('#list a').then((it) => it?.isVisible() ?? false), false);
    await explorer.back();
    assert.equal(await explorer.page.evaluate(() => location.hash), '#Calculator.Add@10.0.0');
    assert.equal(await explorer.page.$('article'), null, 'the tools do not reappear');
    assert.match(await explorer.page.$eval('h2', (it) => it.textContent), /requires credentials/);
    await explorer.go(settings.keyed);
    assert.match(await explorer.page.$eval('h2', (it) => it.textContent), /requires credentials/, 'a reload forgets it');
    await explorer.close();
  },

  async basePaths() {
    for (const end of ['', '/']) {
      const explorer = await open(`${settings.base}${end}#Calculator.Add@10.0.0`);
      await explorer.add('1', '2');
      for (const protocol of ['Oxp', 'Mcp', 'OpenTool']) {
        await explorer.protocol(protocol);
        assert.equal(await explorer.value(), 3, `${protocol} ${end}`);
        assert.ok(explorer.requests.at(-1).url().startsWith(`${settings.base}/`));
      }
      await explorer.close();
    }
  },

  async narrowAndDark() {
    const explorer = await open(settings.toolbox, { width: 375, height: 740 });
    for (const scheme of ['light', 'dark']) {
      await explorer.page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: scheme }]);
      await explorer.go(settings.toolbox);
      await explorer.check(`the list, narrow and ${scheme}`, `narrow.list.${scheme}`);
      await explorer.choose('Calculator.Add@10.0.0');
      await explorer.add('1', '2');
      await explorer.call();
      await explorer.check(`a result, narrow and ${scheme}`, `narrow.result.${scheme}`);
    }
    await explorer.page.setViewport({ width: 1280, height: 900 });
    await explorer.check('a result in the dark', 'result.dark');
    await explorer.go(`${settings.faults}/#Orders.Place@2.0.0`);
    await explorer.call();
    await explorer.check('errors in the dark', 'errors.dark');
    explorer.requests.length = 0;
    await explorer.close();
  },

};

/** The user's part on the pages of this server and of the provider. */
async function allowAt(page) {
  for (let count = 0; count < 8; count += 1) {
    await page.waitForSelector('form button, body');
    if ((await page.title()) === 'Done') {
      await page.close();
      return;
    }
    const action = await page.$('button[name=action][value=allow]');
    if (await page.$('input[name=login]')) {
      await page.type('input[name=login]', 'alice');
      await page.type('input[name=password]', 'x');
    }
    await Promise.all([page.waitForNavigation(), (action ?? await page.$('form button')).click()]);
  }
  assert.fail('the provider does not lead back');
}

const only = process.argv[3];
let failed = 0;
for (const [name, scenario] of Object.entries(SCENARIOS)) {
  if (only && name !== only) continue;
  try {
    await scenario();
  } catch (error) {
    failed += 1;
    console.error(`${name}: ${error.stack}`);
  }
}
await browser.close();
console.log(JSON.stringify(copies));
process.exit(failed ? 1 : 0);
