// Controls for single values. A control has an element, reads and writes its value, and lists the places
// where errors are shown. An undefined value is left out of the input.

/** A label, a description, an input and a place for its error. */
function field({ name, schema, isRequired, input, extra = null }) {
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
function placeOf(target, message) {
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
function jsonControl(context) {
  const input = h('textarea', { rows: '2', class: 'code', autocomplete: 'off', spellcheck: 'false' });
  const schema = { ...context.schema };
  schema.description = [schema.description, 'As JSON.'].filter(Boolean).join(' ');
  const parts = field({ ...context, schema, input });
  const read = (path, problems) => {
    if (!input.value.trim()) return undefined;
    try {
      return parseJson(input.value);
    } catch {
      problems.set(path, 'Is not valid JSON');
      return undefined;
    }
  };
  return simple(parts, read, (value) => {
    input.value = value === undefined ? '' : pretty(value);
  });
}
