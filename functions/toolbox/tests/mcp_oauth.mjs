// Calls an MCP server with the published client for TypeScript, which registers itself and lets its user sign in: URL of
// the server, and user. Prints one line of JSON, as mcp_oauth.py does.
//   --mode legacy|auto, --tool TOOL, --arguments JSON
//   --step-up TOOL   then calls this tool, which needs another scope
import { parseArgs } from 'node:util';
import { Client, StreamableHTTPClientTransport, UnauthorizedError } from '@modelcontextprotocol/client';
import { browse } from './scripted_browser.mjs';

const { positionals: [url, user], values: options } = parseArgs({
  allowPositionals: true,
  options: {
    mode: { type: 'string', default: 'legacy' },
    tool: { type: 'string', default: 'Calculator_Add' },
    arguments: { type: 'string', default: '{"a": 10, "b": 5}' },
    'step-up': { type: 'string' },
  },
});
const redirectUri = 'http://127.0.0.1/callback'; // nothing listens there: the browser stops at this address

/** What the client remembers, and its browser. */
class OAuth {
  asked = [];

  get redirectUrl() { return redirectUri; }
  get clientMetadata() {
    return { client_name: 'test', redirect_uris: [redirectUri], token_endpoint_auth_method: 'none' };
  }
  clientInformation() { return this.client; }
  saveClientInformation(client) { this.client = client; }
  tokens() { return this.saved; }
  saveTokens(tokens) { this.saved = tokens; }
  codeVerifier() { return this.verifier; }
  saveCodeVerifier(verifier) { this.verifier = verifier; }
  discoveryState() { return this.discovered; }
  saveDiscoveryState(state) { this.discovered = state; }
  state() { this.expected = crypto.randomUUID(); return this.expected; }
  async redirectToAuthorization(address) {
    const asked = ['client_id', 'resource', 'scope'].map((name) => [name, address.searchParams.get(name)]);
    this.asked.push(Object.fromEntries(asked));
    this.landed = (await browse(address, user, redirectUri)).searchParams;
    if (this.landed.get('state') !== this.expected) throw new Error(`unexpected state: ${this.landed}`);
  }
}

const oauth = new OAuth();
let transport;

/** Runs a step; if the user had to sign in for it, completes that and runs the step again. */
async function signedIn(step) {
  try {
    return await step();
  } catch (error) {
    if (!(error instanceof UnauthorizedError) || !oauth.landed) throw error;
    await transport.finishAuth(oauth.landed);
    return step();
  }
}

async function connect() {
  const client = new Client({ name: 'test', version: '1.0.0' }, { versionNegotiation: { mode: options.mode } });
  transport = new StreamableHTTPClientTransport(new URL(url), { authProvider: oauth });
  await client.connect(transport);
  return client;
}

async function outcome(client, name) {
  const call = () => client.callTool({ name, arguments: JSON.parse(options.arguments) });
  try {
    const result = await signedIn(call);
    return result.isError ? { failure: result.content[0].text } : { value: result.structuredContent };
  } catch (error) {
    return { error: String(error) };
  }
}

const client = await signedIn(connect);
const seen = { call: await outcome(client, options.tool), scopes: oauth.saved.scope };
if (options['step-up']) {
  seen.step_up = await outcome(client, options['step-up']);
  seen.step_up_scopes = oauth.saved.scope;
}
await client.close();
console.log(JSON.stringify({ ...seen, asked: oauth.asked }));
