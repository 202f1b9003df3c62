// Controls for single values, and those that contain others: objects, lists, a choice of branches, and values
// that may be null. A control has an element, reads and writes its value, and lists the places where errors are
// shown. An undefined value is left out of the input.

import { exactNumber, isObject, isSame, jsonIn, own, pretty, record } from './json.js';
import { button, changed, firstControl, h, newId } from './dom.js';
import { branchesOf, branchName, closestBranch, constantsOf, kindOf, limitsOf, plainSchema, shown } from './schema.js';

/** A label, a description, an input and a place for its error. */
export function field({ name, schema, isRequired, input, extra = null }) {
  const [hint, error] = [newId(), newId()];
  const limits = limitsOf(schema);
  const description = typeof schema.description === 'string' ? schema.description : '';
  input.id = newId();
  input.setAttribute('aria-describedby', `${hint} ${error}`);
  if (isRequired) input.setAttribute('aria-required', 'true');
  const message = h('p', { class: 'error', id: error });
  const element = h('div', { class: 'field' },
    h('label', { for: input.id }, name, ' ', h('span', { class: 'flag' }, isRequired ? 'required' : 'optional')),
    h('p', { class: 'hint', id: hint }, description, limits && h('span', { class: 'limits' }, limits)),
    h('div', { class: 'line' }, input, extra), message);
  return { element, input, place: placeOf(input, message) };
}

/** A place that shows an error of the value that `target` is for. */
export function placeOf(target, message) {
  return {
    target,
    show(text) {
      message.textContent = text ?? '';
      target.closest('.field, fieldset')?.classList.toggle('invalid', text !== null);
      if (text === null) target.removeAttribute('aria-invalid');
      else if (target.matches('input, select, textarea')) target.setAttribute('aria-invalid', 'true');
    },
  };
}

/** The properties that all controls of one input have. */
function simple({ element, input, place }, read, write) {
  return { element, read, write, places: (path) => [[path, place]] };
}

function textControl(context) {
  const { schema } = context;
  const isShort = schema.pattern !== undefined || schema.format !== undefined || schema.maxLength <= 80;
  const attributes = { autocomplete: 'off', spellcheck: 'false', autocapitalize: 'off' };
  const input = isShort ? h('input', { type: 'text', ...attributes }) : h('textarea', { rows: '1', ...attributes });
  // An empty text is sent only if the JSON has it: an empty input means that the value is left out.
  let isEmptyText = false;
  input.addEventListener('input', () => { isEmptyText = false; });
  return simple(field({ ...context, input }), () => (input.value || isEmptyText ? input.value : undefined), (value) => {
    input.value = value === undefined ? '' : shown(value);
    isEmptyText = value === '';
  });
}

function numberControl(context) {
  const inputmode = context.schema.type === 'integer' ? 'numeric' : 'decimal';
  const input = h('input', { type: 'text', inputmode, autocomplete: 'off', class: 'short' });
  const read = () => {
    const text = input.value.trim();
    if (!text) return undefined;
    // Any other text is sent as it is: the server says that it is not a number.
    return /^-?\d+(\.\d+)?(e[-+]?\d+)?$/i.test(text) ? exactNumber(text.replace(/^(-?)0+(?=\d)/, '$1')) : text;
  };
  return simple(field({ ...context, input }), read, (value) => {
    input.value = value === undefined ? '' : shown(value);
  });
}

function constantsControl(context) {
  const constants = constantsOf(context.schema, context.root);
  const options = constants.map(({ value, description }, index) =>
    h('option', { value: String(index) }, shown(value), description ? ` – ${description}` : ''));
  const input = h('select', {}, h('option', { value: '' }, context.isRequired ? 'Choose…' : 'Not set'), ...options);
  const read = () => (input.value === '' ? undefined : constants[Number(input.value)].value);
  return simple(field({ ...context, input }), read, (value) => {
    const index = constants.findIndex((constant) => isSame(constant.value, value));
    input.value = index < 0 ? '' : String(index);
  });
}

/** A value that the schema itself names. */
function fixedControl({ name, schema, isRequired }) {
  const value = schema.const;
  let isSet = isRequired;
  const message = h('p', { class: 'error' });
  const element = h('p', { class: 'field fixed' }, `${name}: `, h('code', {}, shown(value)), message);
  return {
    element,
    read: () => (isSet ? value : undefined),
    write: (given) => { isSet = isRequired || given !== undefined; },
    places: (path) => [[path, placeOf(element, message)]],
  };
}

/** Any JSON, for maps and for schemas without a form. */
export function jsonControl(context) {
  const input = h('textarea', { rows: '2', class: 'code', autocomplete: 'off', spellcheck: 'false' });
  const schema = { ...context.schema };
  schema.description = [schema.description, 'As JSON.'].filter(Boolean).join(' ');
  const parts = field({ ...context, schema, input });
  const read = (path, problems) => {
    if (!input.value.trim()) return undefined;
    const value = jsonIn(input.value);
    if (value === undefined) problems.set(path, 'Is not valid JSON');
    return value;
  };
  return simple(parts, read, (value) => {
    input.value = value === undefined ? '' : pretty(value);
  });
}

const joinedPath = (path, name) => (path ? `${path}.${name}` : name);

/** The control for a schema. `isRoot` is for the input itself, which has no frame. */
export function controlFor(given, root, name, isRequired, isRoot = false) {
  const { schema, nullable } = plainSchema(given, root);
  const context = { schema, root, name, isRequired, isRoot };
  const kind = kindOf(schema, root);
  const make = {
    object: isRequired || isRoot ? objectControl : optionalControl,
    branches: branchesControl,
    list: listControl,
    constants: constantsControl,
    fixed: fixedControl,
    string: textControl,
    number: numberControl,
    integer: numberControl,
    json: jsonControl,
  }[kind];
  const control = make(context);
  return nullable && !isRoot ? nullableControl(context, control) : control;
}

/** A frame with a name and a place for errors of the value as a whole. */
function frame({ name, schema, isRequired, isRoot }, ...content) {
  const [hint, error] = [newId(), newId()];
  const message = h('p', { class: 'error', id: error });
  const limits = limitsOf(schema);
  const element = isRoot ? h('div', { class: 'root' }) : h('fieldset', { 'aria-describedby': `${hint} ${error}` },
    h('legend', {}, name, ' ', h('span', { class: 'flag' }, isRequired ? 'required' : 'optional')),
    h('p', { class: 'hint', id: hint }, schema.description ?? '', limits && h('span', { class: 'limits' }, limits)));
  element.append(...content.filter(Boolean), message);
  return { element, place: placeOf(element, message) };
}

function objectControl(context) {
  const { schema, root } = context;
  const required = schema.required ?? [];
  const properties = Object.entries(schema.properties ?? {}).map(([name, property]) =>
    [name, controlFor(property, root, name, required.includes(name))]);
  const additional = schema.additionalProperties;
  const others = jsonControl({
    schema: { description: 'An object with more properties.' }, root, name: 'other properties', isRequired: false,
  });
  const isOpen = additional === true || isObject(additional);
  others.element.hidden = !isOpen;
  const empty = properties.length === 0 && !isOpen && h('p', { class: 'hint' }, 'There is nothing to fill in.');
  const parts = frame(context, ...properties.map(([, control]) => control.element), empty, others.element);
  return {
    element: parts.element,
    read(path, problems) {
      const object = record();
      for (const [name, control] of properties) {
        const value = control.read(joinedPath(path, name), problems);
        if (value !== undefined) object[name] = value;
      }
      const more = others.read(path, problems);
      for (const [name, value] of Object.entries(isObject(more) ? more : {})) object[name] = value;
      return object;
    },
    write(value) {
      const given = isObject(value) ? value : record();
      for (const [name, control] of properties) control.write(own(given, name));
      const known = new Set(properties.map(([name]) => name));
      const rest = Object.entries(given).filter(([name]) => !known.has(name));
      others.element.hidden = !isOpen && rest.length === 0;
      others.write(rest.length ? record(rest) : undefined);
    },
    places: (path) => [
      [path, parts.place],
      ...properties.flatMap(([name, control]) => control.places(joinedPath(path, name))),
    ],
  };
}

/** An object that is left out until it is added, so that schemas may refer to themselves. */
function optionalControl(context) {
  let inner = null;
  const message = h('p', { class: 'error' });
  const add = button(`Add ${context.name}`, () => {
    open();
    changed(element);
    firstControl(inner.element)?.focus();
  }, { class: 'plain add' });
  const element = h('div', { class: 'optional' }, add, message);
  const open = () => {
    inner = objectControl(context);
    const remove = button('Remove', () => {
      close();
      changed(element);
      add.focus();
    }, { class: 'plain remove', 'aria-label': `Remove ${context.name}` });
    inner.element.append(remove);
    element.replaceChildren(inner.element, message);
  };
  const close = () => {
    inner = null;
    element.replaceChildren(add, message);
  };
  return {
    element,
    read: (path, problems) => inner?.read(path, problems),
    write(value) {
      if (value === undefined) close();
      else {
        if (!inner) open();
        inner.write(value);
      }
    },
    places: (path) => inner?.places(path) ?? [[path, placeOf(element, message)]],
  };
}

function listControl(context) {
  const { schema, root, name, isRequired } = context;
  let items = [];
  let isEmptyList = isRequired;
  const list = h('div', { class: 'items' });
  const add = button('Add item', () => {
    append();
    changed(list);
    firstControl(items.at(-1).element)?.focus();
  }, { class: 'plain add', 'aria-label': `Add item to ${name}` });
  const parts = frame(context, list, add);
  const renumber = () => items.forEach((item, index) => {
    item.row.setAttribute('aria-label', `${name}, item ${index + 1}`);
    item.number.textContent = String(index + 1);
    item.remove.setAttribute('aria-label', `Remove item ${index + 1} of ${name}`);
  });
  const append = () => {
    const control = controlFor(schema.items, root, 'item', true);
    const number = h('span', { class: 'number', 'aria-hidden': 'true' });
    const remove = button('Remove', () => {
      const index = items.findIndex((item) => item.row === row);
      items.splice(index, 1);
      row.remove();
      renumber();
      changed(list);
      (items[index]?.remove ?? add).focus();
    }, { class: 'plain remove' });
    const row = h('div', { class: 'item', role: 'group' }, number, control.element, remove);
    list.append(row);
    items.push({ row, number, remove, control, element: control.element });
    renumber();
  };
  return {
    element: parts.element,
    read(path, problems) {
      const values = items.map(({ control }, index) => control.read(`${path}[${index}]`, problems) ?? null);
      return values.length || isEmptyList ? values : undefined;
    },
    write(value) {
      isEmptyList = isRequired || Array.isArray(value);
      items = [];
      list.replaceChildren();
      for (const item of Array.isArray(value) ? value : []) {
        append();
        items.at(-1).control.write(item);
      }
    },
    places: (path) => [
      [path, parts.place],
      ...items.flatMap(({ control }, index) => control.places(`${path}[${index}]`)),
    ],
  };
}

function branchesControl(context) {
  const { schema, root, isRequired } = context;
  const branches = branchesOf(schema, root);
  const place = h('div');
  let inner = null;
  let index = -1;
  const choose = (next) => {
    index = next;
    inner = index < 0 ? null : controlFor(branches[index], root, branchName(branches[index], index + 1), true);
    place.replaceChildren(...(inner ? [inner.element] : []));
  };
  const options = branches.map((branch, number) => h('option', { value: String(number) }, branchName(branch, number + 1)));
  const input = h('select', { oninput: () => choose(input.value === '' ? -1 : Number(input.value)) },
    h('option', { value: '' }, isRequired ? 'Choose…' : 'Not set'), ...options);
  const parts = field({ ...context, schema: { description: schema.description }, input });
  const element = h('div', { class: 'branches' }, parts.element, place);
  return {
    element,
    read: (path, problems) => inner?.read(path, problems),
    write(value) {
      const next = value === undefined ? -1 : closestBranch(branches, value);
      if (next !== index) choose(next);
      input.value = next < 0 ? '' : String(next);
      inner?.write(value);
    },
    places: (path) => [...(inner?.places(path) ?? []), [path, parts.place]],
  };
}

function nullableControl(context, inner) {
  const fields = h('fieldset', { class: 'plain' }, inner.element);
  const update = () => { fields.disabled = toggle.checked; };
  const toggle = h('input', { type: 'checkbox', oninput: update });
  const label = h('label', { class: 'null' }, toggle, ` ${context.name} is null`);
  return {
    element: h('div', { class: 'nullable' }, fields, label),
    read: (path, problems) => (toggle.checked ? null : inner.read(path, problems)),
    write(value) {
      toggle.checked = value === null;
      inner.write(value === null ? undefined : value);
      update();
    },
    places: (path) => inner.places(path),
  };
}
