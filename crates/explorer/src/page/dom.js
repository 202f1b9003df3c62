// Elements, and texts about them. All data becomes text nodes and attribute values: nothing here parses markup.

let lastId = 0;
export const newId = () => `e${(lastId += 1)}`;

/** An element. Attributes that begin with `on` are listeners; `false` and `null` leave one out. */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? '' : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

export const byId = (id) => document.getElementById(id);

export const button = (text, onclick, more = {}) => h('button', { type: 'button', onclick, ...more }, text);

/** Tells people who cannot see the page. */
export const announce = (text) => { byId('status').textContent = text; };

/** Tells the form that a value has changed without typing. */
export const changed = (element) => element.dispatchEvent(new Event('input', { bubbles: true }));

export const firstControl = (element) =>
  (element.matches('input, select, textarea, button') ? element
    : element.querySelector('input:not(:disabled), select:not(:disabled), textarea:not(:disabled), button:not(:disabled)'));

/** Text that scrolls, also with the keyboard. */
export const codeBlock = (text, label) =>
  h('pre', { tabindex: '0', role: 'region', 'aria-label': label }, h('code', {}, text));

/** `count` with the singular or the plural of a noun. */
export const counted = (count, one, many = `${one}s`) => `${count} ${count === 1 ? one : many}`;

/** A text without its percent encoding; undefined if that is invalid. */
export function decoded(text) {
  try { return decodeURIComponent(text); } catch { return undefined; }
}
