// Calls a tool with a published MCP client for TypeScript, which repeats the call: URL of the server, tool.
// Prints one line of JSON: {"failed": N, "result": …}, with the number of calls that failed for this script. The client of the
// AI SDK repeats a call by itself; the official one does not, so that this script does.
//   --client ai|official
//   --arguments JSON
import { parseArgs } from 'node:util';
import { createMCPClient } from '@ai-sdk/mcp';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';

const { positionals: [url, name], values: options } = parseArgs({
  allowPositionals: true,
  options: { client: { type: 'string' }, arguments: { type: 'string' } },
});
const input = JSON.parse(options.arguments);

let client, call;
if (options.client === 'ai') {
  client = await createMCPClient({ transport: { type: 'http', url }, maxRetries: 2 });
  const tools = await client.tools();
  call = () => tools[name].execute(input, { toolCallId: '1', messages: [] });
} else {
  client = new Client({ name: 'test', version: '1.0.0' });
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
  call = () => client.callTool({ name, arguments: input });
}
let failed = 0;
let result;
while (!result) {
  try {
    result = await call();
  } catch (error) {
    failed += 1;
    if (failed === 3) throw error;
  }
}
await client.close();
console.log(JSON.stringify({ failed, result }));
