// Calls the toolbox with the published MCP clients for TypeScript: URL and API key.

import assert from 'node:assert/strict';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { Client as Client1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as Transport1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

const [url, key] = process.argv.slice(2);
const about = { name: 'test', version: '1.0.0' };
const options = (key) => ({ requestInit: { headers: { Authorization: `Bearer ${key}` } } });

async function check(name, connect) {
  const client = await connect(key);
  const { tools } = await client.listTools();
  assert.equal(tools[0].name, 'Calculator_Add', name);

  const sum = await client.callTool({ name: 'Calculator_Add', arguments: { a: 10, b: 5 } });
  assert.deepEqual([sum.isError ?? false, sum.structuredContent], [false, { result: 15 }], name);

  const invalid = await client.callTool({ name: 'Calculator_Add', arguments: { a: 'x' } });
  assert.equal(invalid.isError, true, name);
  assert.match(invalid.content[0].text, /- a: Must be a number\./, name);

  const failure = await client.callTool({ name: 'Doorbell_Ring', arguments: { doorbell_id: 'none' } });
  assert.equal(failure.isError, true, name);
  assert.match(failure.content[0].text, /Doorbell ID not found/, name);

  await assert.rejects(client.callTool({ name: 'Calculator_Ad', arguments: {} }), /did you mean Calculator_Add/, name);
  await client.close();
  await assert.rejects(async () => (await connect('wrong')).listTools(), /401|[Uu]nauthorized/, name);
}

const current = (mode) => async (key) => {
  const client = new Client(about, { versionNegotiation: { mode } });
  await client.connect(new StreamableHTTPClientTransport(new URL(url), options(key)));
  return client;
};
await check('legacy', current('legacy'));
await check('auto', current('auto'));
await check('pinned', current({ pin: '2026-07-28' }));
await check('sdk', async (key) => {
  const client = new Client1(about);
  await client.connect(new Transport1(new URL(url), options(key)));
  return client;
});
console.log('ok');
