// One tool: what a model reads about it, a form for a call, and the result.

import { pretty, record } from './json.js';
import { announce, codeBlock, counted, h, newId } from './dom.js';
import { field } from './controls.js';
import { editorFor } from './editor.js';
import { send } from './server.js';
import { outcomeOf, PROTOCOLS, requestOf } from './protocols.js';
import { copiesFor } from './copies.js';
import { inSeconds, requestsIn, resultOf } from './result.js';

/** A radio group. `options` are [value, label, isDisabled]. */
function radios(legend, name, options, onchange) {
  const group = newId();
  const items = options.map(([value, label, isDisabled], index) => {
    const input = h('input', { type: 'radio', name: group, value, checked: index === 0, disabled: isDisabled, onchange });
    return h('label', {}, input, ` ${label}`);
  });
  const element = h('fieldset', { class: `choice ${name}` }, h('legend', {}, legend), h('div', { class: 'line' }, ...items));
  return { element, value: () => element.querySelector('input:checked').value };
}

function uuid() {
  // randomUUID exists only on https and on this machine.
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = (bytes[6] & 0x0f) | 0x40;
  bytes[8] = (bytes[8] & 0x3f) | 0x80;
  const hex = [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('');
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}

const REPEATS = {
  idempotent: 'Running it again changes nothing',
  recorded: 'A repeated call id gets the first outcome',
  at_most_once: 'Runs at most once for a call id',
};

function factsAbout(tool, listing) {
  const { requirements = {}, hints } = tool;
  const hint = (value, yes, no) => (value === null ? null : value ? yes : no);
  const mib = (bytes) => `${Math.round((bytes / 1024 / 1024) * 10) / 10} MiB`;
  const providers = (requirements.authorization ?? []).map(({ id, oauth2 }) => `${id} (${oauth2.scopes.join(', ') || 'no scopes'})`);
  return [
    ['Name for models', tool.name],
    ['Needs', [
      requirements.user_id && 'a user', ...(requirements.secrets ?? []).map(({ id }) => `the secret ${id}`),
      ...providers.map((provider) => `a token of ${provider}`),
    ].filter(Boolean).join('; ')],
    ['Scopes of the caller', tool.scopes.join(', ')],
    ['Behavior', [
      hint(hints.read_only, 'only reads', 'may change something'), hint(hints.destructive, 'may delete or overwrite', 'deletes nothing'),
      hint(hints.open_world, 'reaches external systems', 'stays within its own system'),
    ].filter(Boolean).join('; ')],
    ['Repeated calls', listing.recognizes_call_ids || tool.repeats === 'idempotent' ? REPEATS[tool.repeats] : 'Run again: this server remembers no calls'],
    ['Limits', `${inSeconds(tool.timeout_ms)}; ${mib(listing.limits.request_bytes)} a request, ${mib(listing.limits.response_bytes)} a response`],
  ].filter(([, text]) => text);
}

/** Inputs for the user, the secrets and the tokens that a tool requires. OXP alone carries them. */
function contextFor({ requirements = {} }) {
  const fields = [];
  const add = (kind, id, label, type) => {
    const input = h('input', { type, autocomplete: type === 'password' ? 'new-password' : 'off', spellcheck: 'false' });
    const schema = { description: kind === 'user' ? 'Any id that you choose, unless your credential names the user.' : 'Left out if it is empty: the server may have its own.' };
    fields.push({ kind, id, ...field({ name: label, schema, isRequired: false, input }) });
  };
  if (requirements.user_id || requirements.authorization?.length) add('user', 'user', 'User id', 'text');
  for (const { id } of requirements.secrets ?? []) add('secret', id, `Secret ${id}`, 'password');
  for (const { id } of requirements.authorization ?? []) add('token', id, `Token of ${id}`, 'password');
  const filled = (kind) => fields.filter((it) => it.kind === kind && it.input.value);
  const placeholders = { secret: (id) => `VALUE_OF_${id}`, token: (id) => `TOKEN_OF_${id}` };
  const values = (kind, isReal) => filled(kind).map(({ id, input }) => ({ id, value: isReal ? input.value : placeholders[kind](id) }));
  return {
    element: h('fieldset', { class: 'context', hidden: fields.length === 0 }, h('legend', {}, 'Context'), ...fields.map(({ element }) => element)),
    read: (isReal) => ({ userId: filled('user')[0]?.input.value, secrets: values('secret', isReal), tokens: values('token', isReal) }),
    hasFields: fields.length > 0,
    /** Marks what the server says is missing. */
    show(missing) {
      const isMissing = ({ kind, id }) => (kind === 'user' ? missing?.user_id === true
        : kind === 'secret' && (missing?.secrets ?? []).some((it) => it.id === id));
      for (const it of fields) it.place.show(isMissing(it) ? 'The tool needs it.' : null);
      fields.find(isMissing)?.input.focus();
    },
  };
}

/** The choice of the call id: a new one for each call, or one that is kept. */
function callIdFor(onchange) {
  const kept = h('input', { type: 'text', id: newId(), value: uuid(), autocomplete: 'off', spellcheck: 'false', maxlength: '256' });
  const line = h('div', { class: 'field kept', hidden: true }, h('label', { for: kept.id }, 'Call id'), kept);
  const choice = radios('Call id', 'ids', [['new', 'New for each call'], ['kept', 'Keep this one, to see a replay']], () => {
    line.hidden = choice.value() !== 'kept';
    onchange();
  });
  choice.element.append(line);
  let last = kept.value;
  return {
    element: choice.element,
    next: () => { last = choice.value() === 'kept' && kept.value ? kept.value : uuid(); return last; },
    current: () => (choice.value() === 'kept' && kept.value ? kept.value : last),
  };
}

function headOf(tool, versions, listing) {
  const select = h('select', { id: newId(), onchange: () => { location.hash = select.value; } },
    ...versions.map((it) => h('option', { value: it.id, selected: it.id === tool.id }, it.version, it.is_newest ? ' (newest)' : '')));
  const [qualified] = tool.id.split('@');
  return h('div', { class: 'head' },
    h('a', { href: '#', class: 'back' }, '← All tools'),
    h('h2', { id: 'tool', tabindex: '-1' }, tool.title ?? qualified),
    h('div', { class: 'line' }, tool.title ? h('code', {}, qualified) : null, h('label', { for: select.id }, 'Version'), select),
    h('p', { class: 'description' }, tool.description),
    h('dl', { class: 'facts' }, ...factsAbout(tool, listing).flatMap(([name, text]) => [h('dt', {}, name), h('dd', {}, text)])),
    h('details', { class: 'schemas' }, h('summary', {}, 'Schemas'),
      codeBlock(pretty(tool.input_schema), 'Input schema'), codeBlock(pretty(tool.output_schema), 'Output schema')));
}

/** The view of one version of a tool. */
export function toolView(tool, versions, listing) {
  const editor = editorFor(tool.input_schema);
  const context = contextFor(tool);
  const usable = ([id]) => (tool.is_read ? id === 'Mcp' : PROTOCOLS[id].anyVersion || tool.is_newest);
  const served = listing.protocols.filter((id) => Object.hasOwn(PROTOCOLS, id)).map((id) => [id, PROTOCOLS[id].label]);
  const sorted = [...served.filter(usable), ...served.filter((it) => !usable(it))];
  const update = () => {
    context.element.hidden = !context.hasFields || protocols.value() !== 'Oxp';
    copies.update();
  };
  const protocols = radios('Protocol', 'protocols', sorted.map((it) => [...it, !usable(it)]), update);
  if (!tool.is_read && sorted.some((it) => !usable(it))) {
    protocols.element.append(h('p', { class: 'hint' }, 'The other protocols call the newest version.'));
  }
  const ids = callIdFor(() => copies.update());
  const output = h('div', { class: 'output' });
  /** The call that the form describes; `shown` has placeholders in place of secrets and tokens. */
  const callWith = (callId) => {
    const call = { protocol: protocols.value(), input: editor.read().value ?? record(), callId };
    return { real: { ...call, ...context.read(true) }, shown: { ...call, ...context.read(false) } };
  };
  const copies = copiesFor(listing, () => {
    const { shown: call } = callWith(ids.current());
    return requestOf(call.protocol, tool, call);
  });
  let isRunning = false;
  const perform = async (call, answers) => {
    if (isRunning) return;
    isRunning = true;
    submit.setAttribute('aria-disabled', 'true');
    output.setAttribute('aria-busy', 'true');
    announce('Calling…');
    const { protocol } = call.real;
    const request = requestOf(protocol, tool, { ...call.shown, answers });
    let response = { status: 0, headers: [], text: '', ms: 0 };
    const show = (outcome) => showOutcome({
      editor, context, output, request, response, outcome, repeat: (more) => perform(call, more),
    });
    try {
      const { path, method, headers, body } = requestOf(protocol, tool, { ...call.real, answers });
      response = await send(path, { method, headers: Object.fromEntries(headers), body: JSON.stringify(body) });
      show(outcomeOf(protocol, tool, response));
      copies.update();
    } catch (error) {
      show({ kind: 'unreadable', message: `The page cannot send the call or show its response: ${error.message}.` });
    } finally {
      isRunning = false;
      submit.removeAttribute('aria-disabled');
      output.removeAttribute('aria-busy');
    }
  };
  const run = () => {
    if (!isRunning && isReady(editor)) perform(callWith(ids.next()));
  };
  const submit = h('button', { class: 'main', type: 'submit' }, 'Call');
  const form = h('form', {
    autocomplete: 'off', novalidate: true, 'aria-label': 'Call',
    onsubmit: (event) => { event.preventDefault(); run(); },
    onkeydown: (event) => { if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) { event.preventDefault(); run(); } },
    oninput: () => copies.update(),
  }, h('h3', {}, 'Input'), editor.element, context.element,
  h('div', { class: 'options' }, protocols.element, ids.element),
  h('div', { class: 'line actions' }, submit, h('small', { class: 'quiet' }, 'Ctrl+Enter calls from any field')));
  update();
  return h('article', { 'aria-labelledby': 'tool' }, headOf(tool, versions, listing), form, output, copies.element);
}

/** True if all fields can be sent; otherwise, shows those that cannot. The server checks the input. */
function isReady(editor) {
  const { problems, isInvalidJson } = editor.read();
  if (isInvalidJson) {
    editor.focusJson();
    announce('The JSON is not valid.');
    return false;
  }
  if (problems.size === 0) return true;
  editor.show(problems);
  announce(`Not sent: ${counted(problems.size, 'value')} to correct.`);
  return false;
}

function showOutcome({ editor, context, output, request, response, outcome, repeat }) {
  const errors = outcome.errors ?? [];
  const unplaced = editor.show(errors);
  const { element, heading } = resultOf({ request, response, outcome, unplaced, more: requestsIn(outcome, repeat) });
  output.replaceChildren(element);
  announce(`${heading.textContent}. ${outcome.kind === 'value' ? '' : outcome.message ?? ''}`);
  context.show(outcome.missing);
  // People who do not see the page continue at the invalid field, or else at the result.
  const hasFocus = errors.length > unplaced.length || outcome.missing?.user_id || outcome.missing?.secrets?.length;
  if (!hasFocus) heading.focus();
}
