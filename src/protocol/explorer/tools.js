// The list of tools, by toolkit, with a search.

/** The versions of each tool, newest first, in the order of the server. */
function versionsByTool(tools) {
  const byTool = new Map();
  for (const tool of tools) {
    const [qualified] = tool.id.split('@');
    byTool.set(qualified, [...(byTool.get(qualified) ?? []), tool]);
  }
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
  const toolkits = new Map();
  for (const entry of found) {
    const { toolkit } = entry[1][0];
    toolkits.set(toolkit, [...(toolkits.get(toolkit) ?? []), entry]);
  }
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
