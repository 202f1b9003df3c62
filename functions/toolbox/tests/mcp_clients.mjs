// Calls the toolbox with the published MCP clients for TypeScript: URL, API key, wrong key, calls as
// JSON, and the client: legacy, auto, or sdk for the one before version 2. Prints what
// tests/support/src/mcp.rs expects of a peer.

import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { Client as Client1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as Transport1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

const [url, key, wrongKey, calls, name] = process.argv.slice(2);
const about = { name: 'test', version: '1.0.0' };

async function connect(key) {
  const options = { requestInit: { headers: { Authorization: `Bearer ${key}` } } };
  if (name === 'sdk') {
    const client = new Client1(about);
    await client.connect(new Transport1(new URL(url), options));
    return client;
  }
  const client = new Client(about, { versionNegotiation: { mode: name } });
  await client.connect(new StreamableHTTPClientTransport(new URL(url), options));
  return client;
}

async function outcome(client, name, args) {
  try {
    const result = await client.callTool({ name, arguments: args });
    return result.isError ? { failure: result.content[0].text } : { value: result.structuredContent };
  } catch (error) {
    return { error: String(error) };
  }
}

const client = await connect(key);
const tools = (await client.listTools()).tools.map((tool) => tool.name);
const outcomes = [];
for (const [name, args] of JSON.parse(calls)) {
  outcomes.push(await outcome(client, name, args));
}
await client.close();
const unauthorized = await connect(wrongKey).then(
  () => null,
  (error) => String(error),
);
console.log(JSON.stringify({ tools, outcomes, unauthorized }));
