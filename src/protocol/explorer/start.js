// The start: loads the list of tools, asks for a credential if it is needed, and follows the address.

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
    credential = given;
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
  const hadCredential = credential !== '';
  const response = await send('explorer.json');
  const listing = jsonOf(response);
  if (response.status === 401 || response.status === 403) {
    credential = '';
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

/** The id in the address, such as `#Toolkit.Tool@1.0.0`; empty if there is none. */
function addressedTool() {
  try {
    return decodeURIComponent(location.hash.slice(1));
  } catch {
    return '';
  }
}

/** Shows the tool in the address, or else the first one; returns its id. One that is shown keeps its input. */
function showAddress(byTool, listing, before) {
  const id = addressedTool();
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

byId('skip').addEventListener('click', (event) => {
  event.preventDefault();
  byId('main').focus();
});
byId('forget').addEventListener('click', () => {
  credential = '';
  askForCredential(null);
});
load();
