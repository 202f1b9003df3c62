// The start: loads the list of tools, asks for a credential if it is needed, and follows the address.

import { announce, button, byId, counted, decoded, h, newId } from './dom.js';
import { hasCredential, isSendable, jsonOf, send, setCredential } from './server.js';
import { toolView } from './tool.js';

/** The versions of each tool, newest first, in the order of the server. */
function versionsByTool(tools) {
  const byTool = Map.groupBy(tools, (tool) => tool.id.split('@')[0]);
  for (const versions of byTool.values()) {
    versions.sort((one, other) => Number(other.is_newest) - Number(one.is_newest) ||
      other.version.localeCompare(one.version, 'en', { numeric: true }));
  }
  return byTool;
}

const firstSentence = (text) => text.split(/(?<=[.!?])\s|\n/)[0];

const isFound = ([newest], words) => {
  const text = `${newest.id} ${newest.name} ${newest.title ?? ''} ${newest.description}`.toLowerCase();
  return words.every((word) => text.includes(word));
};

/** Shows the tools that match the search. */
function showList(byTool, currentId) {
  const words = byId('search').value.toLowerCase().split(/\s+/).filter(Boolean);
  const found = [...byTool].filter(([, versions]) => isFound(versions, words));
  const toolkits = Map.groupBy(found, ([, [newest]]) => newest.toolkit);
  const [current] = (currentId ?? '').split('@');
  const link = ([qualified, [newest, ...older]]) => h('li', {},
    h('a', { href: `#${newest.id}`, 'aria-current': qualified === current ? 'true' : null },
      h('span', { class: 'name' }, qualified.split('.').slice(1).join('.'),
        older.length > 0 && h('small', {}, ` ${older.length + 1} versions`)),
      h('span', { class: 'summary' }, firstSentence(newest.description))));
  byId('list').replaceChildren(...[...toolkits].map(([name, tools]) =>
    h('section', {}, h('h2', {}, name), h('ul', {}, ...tools.map(link)))));
  byId('found').textContent = words.length ? `${counted(found.length, 'tool')} found` : counted(found.length, 'tool');
}

/** Matches a window in which the style puts the tool below the list, or in its place. */
const narrow = matchMedia('(max-width: 700px)');

/** Asks for a credential. It stays in memory, and the field is emptied. */
function askForCredential(message) {
  const input = h('input', {
    type: 'password', id: newId(), autocomplete: 'new-password', spellcheck: 'false', 'aria-describedby': 'credential-error credential-hint',
    'aria-invalid': message ? 'true' : null,
  });
  const error = h('p', { class: 'error', id: 'credential-error' }, message ?? '');
  const submit = async (event) => {
    event.preventDefault();
    const given = input.value.trim().replace(/^Bearer\s+/i, '');
    if (!isSendable(given)) {
      error.textContent = given ? 'A credential has no spaces and no letters outside of ASCII.' : 'Is required';
      input.setAttribute('aria-invalid', 'true');
      input.focus();
      return;
    }
    setCredential(given);
    input.value = '';
    await load();
  };
  showAlone(h('form', { class: 'alone', autocomplete: 'off', novalidate: true, onsubmit: submit },
    h('h2', {}, 'This server requires credentials'),
    h('div', { class: 'field' }, h('label', { for: input.id }, 'API key or access token'),
      h('p', { class: 'hint', id: 'credential-hint' }, 'It is sent to this server only, and forgotten when the page is closed.'),
      input, error),
    h('button', { class: 'main' }, 'Continue')));
  input.focus();
}

function showAlone(element) {
  // The tools of the last credential must not reappear when the address or the width changes.
  onhashchange = null;
  narrow.onchange = null;
  byId('list').replaceChildren();
  document.body.classList.remove('chosen');
  byId('tools').hidden = true;
  byId('forget').hidden = true;
  document.title = 'Tool explorer';
  byId('title').textContent = 'Tool explorer';
  byId('about').textContent = '';
  byId('main').replaceChildren(element);
}

/** Loads the list of tools and shows it. */
async function load() {
  const hadCredential = hasCredential();
  const response = await send('explorer.json');
  const listing = jsonOf(response);
  if (response.status === 401 || response.status === 403) {
    setCredential('');
    askForCredential(hadCredential ? 'The server does not accept this credential.' : null);
  } else if (response.status !== 200 || !Array.isArray(listing?.tools)) {
    const reason = response.problem ?? listing?.developer_message ?? `status ${response.status}`;
    showAlone(h('div', { class: 'alone' }, h('h2', {}, 'The tools cannot be loaded'), h('p', {}, reason), button('Try again', load, { class: 'main' })));
    announce('The tools cannot be loaded.');
  } else {
    showListing(listing);
    // The form had the focus.
    if (hadCredential) focusTool();
  }
}

function showListing(listing) {
  const { title, version, description } = listing.server;
  document.title = title;
  byId('title').textContent = title;
  byId('about').textContent = `${description} Version ${version}.`;
  byId('forget').hidden = !listing.requires_credentials;
  byId('tools').hidden = false;
  const byTool = versionsByTool(listing.tools);
  let shown;
  const show = () => { shown = showAddress(byTool, listing, shown); };
  onhashchange = () => { show(); focusTool(); };
  // A tool that is there stays, with its input: it is then below the list, or next to it.
  narrow.onchange = () => { if (!byId('tool')) show(); };
  byId('search').oninput = () => showList(byTool, shown);
  show();
}

const focusTool = () => (byId('tool') ?? byId('main')).focus();

/** Shows the tool in the address, or else the first one; returns its id. One that is shown keeps its input. */
function showAddress(byTool, listing, before) {
  // Such as `#Toolkit.Tool@1.0.0`; empty if there is none.
  const id = decoded(location.hash.slice(1)) ?? '';
  // On a narrow screen, it would be below a list that is long unless there is only one tool.
  const isFirst = !id && (byTool.size === 1 || !narrow.matches);
  const [versions] = isFirst ? byTool.values() : [byTool.get(id.split('@')[0])];
  const tool = versions?.find((it) => it.id === id) ?? (id.includes('@') ? undefined : versions?.[0]);
  document.body.classList.toggle('chosen', tool !== undefined && !isFirst);
  const shown = tool?.id ?? id;
  showList(byTool, shown);
  document.title = tool && !isFirst ? `${tool.id} – ${listing.server.title}` : listing.server.title;
  if (tool) {
    if (tool.id !== before || !byId('tool')) byId('main').replaceChildren(toolView(tool, versions, listing));
  } else {
    const text = id ? `This server has no tool ${id}.` : listing.tools.length ? 'Choose a tool to see what a model reads about it, and to call it.' : 'This server has no tools yet.';
    byId('main').replaceChildren(h('p', { class: 'quiet empty' }, text));
  }
  return shown;
}

byId('skip').onclick = (event) => { event.preventDefault(); byId('main').focus(); };
byId('forget').onclick = () => { setCredential(''); askForCredential(null); };
load();
