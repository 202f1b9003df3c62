// Reads a server's metadata as an authorization server with the published clients for TypeScript: URL of the server.
// Prints one line of JSON: for each document, what each client has read. Each document is the only one that is found.
import { discoverAuthorizationServerMetadata as client } from '@modelcontextprotocol/client';
import { discoverAuthorizationServerMetadata as sdk } from '@modelcontextprotocol/sdk/client/auth.js';

const [url] = process.argv.slice(2);
const found = {};
for (const document of ['oauth-authorization-server', 'openid-configuration']) {
  const fetchFn = async (address, init) =>
    String(address).includes(document) ? fetch(address, init) : new Response(null, { status: 404 });
  found[document] = await Promise.all([client, sdk].map((discover) => discover(url, { fetchFn })));
}
console.log(JSON.stringify(found));
