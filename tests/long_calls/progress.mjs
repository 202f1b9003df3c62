// Calls a tool with the published MCP client for TypeScript and prints its progress: URL of the server, tool.
// Prints one line of JSON: {"progress": [[progress, total, message], …], "times": [ms, …], "result": …}, with the milliseconds
// since the call at which each progress came. An error of the client is {"error": "…"} instead of the result.
//   --era legacy|modern   default: modern, which is pinned to 2026-07-28
//   --reset-after MS      the client waits this long for the result, or since the last progress
//   --timeout MS          the client waits this long for the result, whatever comes before (default: 45000)
//   --arguments JSON      default: {}
import { parseArgs } from 'node:util';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';

const { positionals: [url, tool], values: options } = parseArgs({
  allowPositionals: true,
  options: {
    era: { type: 'string', default: 'modern' },
    'reset-after': { type: 'string' },
    timeout: { type: 'string', default: '45000' },
    arguments: { type: 'string', default: '{}' },
  },
});
const modes = { legacy: 'legacy', modern: { pin: '2026-07-28' } };

const client = new Client({ name: 'test', version: '1.0.0' }, { versionNegotiation: { mode: modes[options.era] } });
const seen = { progress: [], times: [] };
await client.connect(new StreamableHTTPClientTransport(new URL(url)));

const started = performance.now();
const onprogress = ({ progress, total, message }) => {
  seen.progress.push([progress, total ?? null, message ?? null]);
  seen.times.push(Math.round(performance.now() - started));
};
const resetAfter = options['reset-after'];
const limits = resetAfter
  ? { timeout: Number(resetAfter), resetTimeoutOnProgress: true, maxTotalTimeout: 45_000 }
  : { timeout: Number(options.timeout) };
try {
  const call = { name: tool, arguments: JSON.parse(options.arguments) };
  seen.result = await client.callTool(call, { onprogress, ...limits });
} catch (error) {
  seen.error = String(error);
}
await client.close();
console.log(JSON.stringify(seen));
