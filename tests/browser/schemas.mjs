// Schemas that the page's own check must not get wrong. The server of these scenarios is the test: it replaces the
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

/** [name, schema, input, whether the page sends it]. */
const CASES = [
  ['a property that matches a pattern', { ...anything, patternProperties: { '^x-': { type: 'string' } }, additionalProperties: { type: 'integer' } }, { 'x-a': 'text' }, true],
  ['an object in another order', propertyOf({ const: { a: 1, b: 2 } }), { v: { b: 2, a: 1 } }, true],
  ['an object of an enum in another order', propertyOf({ enum: [{ a: 1, b: 2 }] }), { v: { b: 2, a: 1 } }, true],
  ['a constant', propertyOf({ const: 'one' }), { v: 'two' }, false],
  ['a multiple without its last digit', propertyOf({ type: 'integer', multipleOf: 3 }), '{"v": 9007199254740993}', true],
  ['no multiple', propertyOf({ type: 'integer', multipleOf: 3 }), { v: 10 }, false],
  ['the largest integer of 64 bits', '{"type": "object", "properties": {"v": {"type": "integer", "maximum": 18446744073709551615}}}', '{"v": 18446744073709551615}', true],
  ['a limit without its last digit', '{"type": "object", "properties": {"v": {"type": "integer", "exclusiveMaximum": 9007199254740993}}}', '{"v": 9007199254740992}', true],
  ['an integer beyond a limit', '{"type": "object", "properties": {"v": {"type": "integer", "maximum": 18446744073709551615}}}', '{"v": 28446744073709551615}', false],
  ['null in one of two forms', propertyOf({ anyOf: [{ type: ['string', 'null'] }, { type: 'number' }] }), { v: null }, true],
  ['null in a schema of several parts', propertyOf({ allOf: [{ type: ['string', 'null'] }] }), { v: null }, true],
  ['a form without the constant of another one', propertyOf({ anyOf: [{ ...anything, properties: { kind: { const: 'a' } }, required: ['x'] }, anything] }), { v: { kind: 'a' } }, true],
  ['a reference next to properties', propertyOf({ $ref: '#/$defs/a', properties: { y: true } }, { $defs: { a: { ...anything, properties: { x: true }, additionalProperties: false } } }), { v: { x: 1 } }, true],
  ['a reference to an anchor', propertyOf({ $ref: '#name' }, { $defs: { name: { $anchor: 'name', type: 'string' } } }), { v: 'text' }, true],
  ['a malformed reference', propertyOf({ $ref: '#/%' }), { v: 'text' }, true],
  ['a malformed reference next to a rule', { ...anything, properties: { v: { $ref: '#/%' }, w: { type: 'string' } } }, { w: 1 }, false],
  ['a schema that contains itself', { allOf: [{ $ref: '#' }] }, {}, true],
  ['forms in forms', propertyOf({ $ref: '#/$defs/tree' }, branches), { v: nested(3) }, false],
  ['more forms in forms than can be checked', propertyOf({ $ref: '#/$defs/tree' }, branches), { v: nested(35) }, true],
  ['a pattern that fits', propertyOf({ type: 'string', pattern: '^[a-z]+@[a-z]+\\.org$' }), { v: 'ada@example.org' }, true],
  ['a pattern that does not fit', propertyOf({ type: 'string', pattern: '^[a-z]+@[a-z]+\\.org$' }), { v: 'ada.example.org' }, false],
  ['a repeated group of fixed length', propertyOf({ type: 'string', pattern: '^([0-9a-f]{2}:){5}[0-9a-f]{2}$' }), { v: '00:11:22:33:44:5' }, false],
  ...['^(a+)+$', '^(a|a)*$', '^((a?)b?)*$', '^(?:a{1,9}){2,}$', `^${'a?'.repeat(40)}${'a'.repeat(40)}$`, `${'a*'.repeat(12)}b`].map((pattern) =>
    [`the pattern ${pattern}`, propertyOf({ type: 'string', pattern }), { v: `${'a'.repeat(38)}!` }, true]),
];

const reply = (request, body) => request.respond({ contentType: 'application/json', body });

/** `open` is a function that opens a page of the toolbox at an address. */
export const schemaScenarios = (open) => ({
  async checks() {
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
    for (const [name, schema, input, isSent] of CASES) {
      // As text: these have digits that JavaScript's numbers do not have.
      const textOf = (it) => (typeof it === 'string' ? it : JSON.stringify(it));
      tool = JSON.stringify({ ...listing, tools: [{ ...listing.tools[0], input_schema: 'SCHEMA' }] }).replace('"SCHEMA"', () => textOf(schema));
      sent = [];
      await explorer.page.reload({ waitUntil: 'domcontentloaded' });
      await explorer.page.waitForSelector('.json textarea');
      await explorer.page.$eval('.json textarea', (it, text) => { it.value = text; it.dispatchEvent(new Event('input', { bubbles: true })); }, textOf(input));
      await explorer.page.click('button[type=submit]');
      const state = await explorer.page.waitForFunction(() => /^(Not sent|Succeeded)/.exec(document.querySelector('#status').textContent)?.[0])
        .then((it) => it.jsonValue(), () => 'nothing happens');
      if (state !== (isSent ? 'Succeeded' : 'Not sent') || sent.length !== Number(isSent)) failed.push([name, state]);
    }
    assert.deepEqual(failed, []);
    await explorer.page.close();
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
    await explorer.fill('a', '20');
    await explorer.fill('b', '22');
    const { title, text } = await explorer.call();
    assert.equal(title, 'The call failed');
    assert.match(text, /The page cannot send the call or show its response/);
    isBroken = false;
    assert.equal(await explorer.value(), 42, 'the next call is possible');
    await explorer.close();
  },
});
