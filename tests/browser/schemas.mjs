// Schemas and responses that the page must not stumble over. The server of these scenarios is the test: it replaces the
// list of tools and the responses, and notes which inputs the page sends.
import assert from 'node:assert/strict';

const anything = { type: 'object' };
const nested = (depth) => (depth === 0 ? { leaf: 'x' } : { one: nested(depth - 1) });
const branches = {
  $defs: {
    tree: {
      anyOf: ['a', 'b'].map((name) => ({
        type: 'object', properties: { one: { $ref: '#/$defs/tree' }, [name]: { type: 'string' } }, required: [name],
      })),
    },
  },
};
const propertyOf = (schema, more = {}) => ({ ...anything, ...more, properties: { v: schema }, required: ['v'] });

/** [name, schema, input]. */
const CASES = [
  ['an object in another order', propertyOf({ const: { a: 1, b: 2 } }), { v: { b: 2, a: 1 } }],
  ['the largest integer of 64 bits', '{"type": "object", "properties": {"v": {"type": "integer", "maximum": 18446744073709551615}}}', '{"v": 18446744073709551615}'],
  ['null in one of two branches', propertyOf({ anyOf: [{ type: ['string', 'null'] }, { type: 'number' }] }), { v: null }],
  ['null in a schema of several parts', propertyOf({ allOf: [{ type: ['string', 'null'] }] }), { v: null }],
  ['a reference next to properties', propertyOf({ $ref: '#/$defs/a', properties: { y: true } }, { $defs: { a: { ...anything, properties: { x: true } } } }), { v: { x: 1 } }],
  ['a reference to an anchor', propertyOf({ $ref: '#name' }, { $defs: { name: { $anchor: 'name', type: 'string' } } }), { v: 'text' }],
  ['a malformed reference', propertyOf({ $ref: '#/%' }), { v: 'text' }],
  ['a schema that contains itself', { allOf: [{ $ref: '#' }] }, {}],
  ['branches in branches', propertyOf({ $ref: '#/$defs/tree' }, branches), { v: nested(35) }],
  ['an input of another type', propertyOf({ type: 'integer' }), { v: ['text'] }],
];

const reply = (request, body) => request.respond({ contentType: 'application/json', body });

/** `open` is a function that opens a page of the toolbox at an address. */
export const schemaScenarios = (open) => ({
  async unusualSchemas() {
    const explorer = await open('');
    const listing = await explorer.page.evaluate(async () => (await fetch('explorer.json')).json());
    let tool = '';
    let sent = [];
    await explorer.page.setRequestInterception(true);
    explorer.page.on('request', (request) => {
      if (request.url().endsWith('/explorer.json')) reply(request, tool);
      else if (request.method() === 'POST') {
        sent.push(request.postData());
        reply(request, '{"success": true, "value": 1}');
      } else request.continue();
    });
    const failed = [];
    for (const [name, schema, input] of CASES) {
      // As text: these have digits that JavaScript's numbers do not have.
      const textOf = (it) => (typeof it === 'string' ? it : JSON.stringify(it));
      tool = JSON.stringify({ ...listing, tools: [{ ...listing.tools[0], input_schema: 'SCHEMA' }] }).replace('"SCHEMA"', () => textOf(schema));
      sent = [];
      await explorer.page.reload({ waitUntil: 'domcontentloaded' });
      await explorer.page.waitForSelector('.json textarea');
      await explorer.write(textOf(input));
      await explorer.page.click('button[type=submit]');
      const state = await explorer.page.waitForFunction(() => document.querySelector('#status').textContent.startsWith('Succeeded')).then(() => true, () => false);
      if (!state || JSON.stringify(JSON.parse(sent[0]).input) !== JSON.stringify(JSON.parse(textOf(input)))) failed.push(name);
    }
    assert.deepEqual(failed, []);
    await explorer.page.close();
  },

  async noTools() {
    const explorer = await open('');
    const listing = await explorer.page.evaluate(async () => (await fetch('explorer.json')).json());
    await explorer.page.setRequestInterception(true);
    explorer.page.on('request', (request) => {
      if (request.url().endsWith('/explorer.json')) reply(request, JSON.stringify({ ...listing, tools: [] }));
      else request.continue();
    });
    await explorer.go(explorer.url);
    assert.equal(await explorer.page.$eval('main', (it) => it.innerText), 'This server has no tools yet.');
    await explorer.check('no tools');
    await explorer.close();
  },

  async unexpectedResponses() {
    const explorer = await open('#Calculator.Add@10.0.0');
    let isBroken = true;
    await explorer.page.setRequestInterception(true);
    explorer.page.on('request', (request) => {
      if (request.method() === 'POST' && isBroken) reply(request, '{"result": {"content": [null]}}');
      else request.continue();
    });
    await explorer.protocol('Mcp');
    await explorer.add('20', '22');
    const { title, text } = await explorer.call();
    assert.equal(title, 'The call failed');
    assert.match(text, /The page cannot send the call or show its response/);
    isBroken = false;
    assert.equal(await explorer.value(), 42, 'the next call is possible');
    await explorer.close();
  },
});
