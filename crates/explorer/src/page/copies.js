// A call in other formats, to paste elsewhere. They have placeholders in place of credentials, secrets and
// tokens.

import { isObject, pretty } from './json.js';
import { announce, button, h, newId } from './dom.js';
import { urlOf } from './server.js';

const KEY = 'YOUR_KEY';

const COPIES = {
  curl: { label: 'curl', of: curlCopy },
  python: { label: 'Python', of: pythonCopy },
  settings: { label: 'MCP settings', of: settingsCopy, needsMcp: true },
  claude: { label: 'Claude Code', of: claudeCopy, needsMcp: true },
  event: { label: 'Event for tests', of: eventCopy },
};

/** A text as one word of a POSIX shell. */
const quoted = (text) => `'${text.replaceAll("'", `'\\''`)}'`;

const withKey = (headers, listing) =>
  (listing.requires_credentials ? [...headers, ['authorization', `Bearer ${KEY}`]] : headers);

function curlCopy(request, listing) {
  const headers = withKey(request.headers, listing).map(([name, value]) => `-H ${quoted(`${name}: ${value}`)}`);
  const parts = [`curl ${quoted(urlOf(request.path))}`, ...headers, `-d ${quoted(JSON.stringify(request.body))}`];
  return parts.join(' \\\n  ');
}

/** A value in the syntax of Python. A JSON string is a string there as well. */
function python(value, indent = '') {
  const inner = `${indent}    `;
  const lines = (items, [open, close]) =>
    (items.length ? `${open}\n${items.map((item) => `${inner}${item},\n`).join('')}${indent}${close}` : open + close);
  if (value === null || value === undefined) return 'None';
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  if (Array.isArray(value)) return lines(value.map((item) => python(item, inner)), '[]');
  if (!isObject(value)) return JSON.stringify(value);
  const items = Object.entries(value).filter(([, item]) => item !== undefined);
  return lines(items.map(([name, item]) => `${JSON.stringify(name)}: ${python(item, inner)}`), '{}');
}

function pythonCopy(request, listing) {
  const headers = Object.fromEntries(withKey(request.headers, listing));
  return `import json
import urllib.error
import urllib.request

body = ${python(request.body)}
request = urllib.request.Request(
    ${JSON.stringify(urlOf(request.path))},
    data=json.dumps(body).encode(),
    headers=${python(headers, '    ')},
)
try:
    with urllib.request.urlopen(request) as response:
        print(json.load(response))
except urllib.error.HTTPError as error:
    print(error.code, json.load(error))
`;
}

/** The server's title as a name that every client and shell accepts. */
const nameOf = (listing) =>
  listing.server.title.toLowerCase().replace(/[^a-z0-9]+/g, '-').replace(/^-+|-+$/g, '').slice(0, 40) || 'tools';

function settingsCopy(_, listing) {
  const headers = listing.requires_credentials ? { headers: { Authorization: `Bearer ${KEY}` } } : {};
  return pretty({ mcpServers: { [nameOf(listing)]: { type: 'http', url: urlOf('mcp'), ...headers } } });
}

function claudeCopy(_, listing) {
  const key = listing.requires_credentials ? ` --header "Authorization: Bearer ${KEY}"` : '';
  return `claude mcp add --transport http ${nameOf(listing)} ${quoted(urlOf('mcp'))}${key}`;
}

/** An HTTP API event, payload format 2.0, as `testing::replay` reads it and the local server records it. */
function eventCopy(request, listing) {
  const path = `/${request.path}`;
  const http = { method: request.method, path, protocol: 'HTTP/1.1', sourceIp: '192.0.2.1', userAgent: 'recorded' };
  return pretty({
    version: '2.0',
    routeKey: '$default',
    rawPath: path,
    rawQueryString: '',
    headers: Object.fromEntries(withKey(request.headers, listing)),
    requestContext: {
      accountId: '123456789012',
      apiId: 'recorded',
      domainName: 'recorded.execute-api.us-east-1.amazonaws.com',
      domainPrefix: 'recorded',
      http,
      requestId: 'recorded',
      routeKey: '$default',
      stage: '$default',
      time: '05/Oct/2023:12:00:00 +0000',
      timeEpoch: 1696507200000,
    },
    body: JSON.stringify(request.body),
    isBase64Encoded: false,
  });
}

/** The section with the copies. `requestNow` makes the request that the form describes. */
export function copiesFor(listing, requestNow) {
  const hasMcp = listing.protocols.includes('Mcp');
  const available = Object.entries(COPIES).filter(([, copy]) => hasMcp || !copy.needsMcp);
  const options = available.map(([id, { label }]) => h('option', { value: id }, label));
  const kind = h('select', { id: newId() }, ...options);
  const text = h('code');
  const block = h('pre', { tabindex: '0', role: 'region', 'aria-label': 'Text to copy' }, text);
  const update = () => { text.textContent = COPIES[kind.value].of(requestNow(), listing); };
  kind.addEventListener('change', update);
  const copy = button('Copy', async () => {
    try {
      await navigator.clipboard.writeText(text.textContent);
      announce('Copied.');
    } catch {
      getSelection().selectAllChildren(text);
      announce('The text is selected; copy it with the keyboard.');
    }
  }, { class: 'plain' });
  const section = h('section', { class: 'copies', 'aria-labelledby': 'copies' },
    h('h3', { id: 'copies' }, 'Use it elsewhere'),
    h('div', { class: 'line' }, h('label', { for: kind.id }, 'Copy as'), kind, copy), block);
  return { element: section, update };
}
