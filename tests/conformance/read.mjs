// Reads resources and gets a prompt with the published MCP client for TypeScript: URL of the conformance server.
// Prints one line of JSON: {"resources": [URI, …], "templates": [URI template, …], "prompts": [name, …],
// "static": text, "template": text, "unknown": …, "prompt": text, "completion": [value, …]}, with the error for a URI
// that no resource has as "code: message", and the values that complete an argument of the prompt. The client turns
// the code -32002 of earlier revisions into -32602.
//   --era legacy|modern   default: modern, which is pinned to 2026-07-28
import { parseArgs } from 'node:util';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';

const { positionals: [url], values: options } = parseArgs({
  allowPositionals: true,
  options: { era: { type: 'string', default: 'modern' } },
});
const modes = { legacy: 'legacy', modern: { pin: '2026-07-28' } };

const client = new Client({ name: 'test', version: '1.0.0' }, { versionNegotiation: { mode: modes[options.era] } });
await client.connect(new StreamableHTTPClientTransport(new URL(url)));

const name = 'test_prompt_with_arguments';
const read = async (uri) => (await client.readResource({ uri })).contents[0].text;
const { resources } = await client.listResources();
const { resourceTemplates } = await client.listResourceTemplates();
const { prompts } = await client.listPrompts();
const prompt = await client.getPrompt({ name, arguments: { arg1: 'x', arg2: 'y' } });
const argument = { name: 'arg1', value: '' };
const { completion } = await client.complete({ ref: { type: 'ref/prompt', name }, argument });
const seen = {
  resources: resources.map((it) => it.uri),
  templates: resourceTemplates.map((it) => it.uriTemplate),
  prompts: prompts.map((it) => it.name),
  static: await read('test://static-text'),
  template: await read('test://template/7/data'),
  unknown: await read('test://nothing').catch((error) => `${error.code}: ${error.message}`),
  prompt: prompt.messages[0].content.text,
  completion: completion.values,
};
await client.close();
console.log(JSON.stringify(seen));
