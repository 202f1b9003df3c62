// Showing what a call returned, the request and the response behind it, and what it asks of its user: access to
// an account at a provider, or the answer to a question.

import { isNumber, isObject, numberOf, pretty } from './json.js';
import { button, codeBlock, counted, h } from './dom.js';
import { controlFor, placeOf } from './controls.js';
import { placeFor } from './editor.js';
import { BASE, hasCredential, jsonOf, send, urlOf } from './server.js';

/** The time between two checks, and the longest time for all of them. */
const CHECK_EVERY = 1500;
const CHECK_FOR = 10 * 60 * 1000;

/** A URL that a browser may open; null for any other, such as one that runs a script. */
function safeUrl(text) {
  const url = URL.canParse(text) ? new URL(text) : null;
  return ['https:', 'http:'].includes(url?.protocol) ? url : null;
}

const isOwn = (text) => safeUrl(text)?.href.startsWith(BASE) ?? false;

/** Asks this server whether the user has allowed access; stops with the element. */
async function isAllowed(checkUrl, element) {
  const path = safeUrl(checkUrl).href.slice(BASE.length);
  for (const end = performance.now() + CHECK_FOR; performance.now() < end && element.isConnected;) {
    const status = jsonOf(await send(path))?.status;
    if (status === 'completed') return true;
    if (typeof status === 'string' && status !== 'pending') return false;
    await new Promise((done) => { setTimeout(done, CHECK_EVERY); });
  }
  return false;
}

/** A button that opens the provider's page, and repeats the call once the user has allowed access. */
function challengeElement({ provider, url, checkUrl, message }, repeat) {
  const target = safeUrl(url);
  if (!target) return h('p', { class: 'error' }, 'The challenge’s URL is not a web address.');
  const state = h('p', { class: 'hint', role: 'status' });
  let isDone = false;
  const finish = () => {
    // Not for a tool that is no longer shown.
    if (!isDone && element.isConnected) repeat();
    isDone = true;
  };
  const element = h('div', { class: 'challenge' });
  const confirm = button('I have allowed it', finish, { hidden: true, class: 'plain' });
  const open = button(`Allow access to ${provider}`, async () => {
    window.open(target.href, '_blank', 'noopener,noreferrer');
    confirm.hidden = false;
    if (!isOwn(checkUrl)) return;
    state.textContent = 'Waiting until you have allowed access in the other window…';
    if (await isAllowed(checkUrl, element)) finish();
    else state.textContent = 'Access was not allowed, or it took too long.';
  }, { class: 'main' });
  element.append(
    h('p', {}, message ?? 'The tool needs access to the user’s account. The page opens in a new window, at ',
      !message && h('code', {}, target.host)),
    h('div', { class: 'line' }, open, confirm), state);
  return element;
}

/** A question with its form. `answer` gets the user's response. */
function questionElement({ message, requestedSchema }, answer) {
  const editor = controlFor(isObject(requestedSchema) ? requestedSchema : {}, requestedSchema, 'answer', true, true);
  const problem = h('p', { class: 'error' });
  const accept = () => {
    const problems = new Map();
    const content = editor.read('', problems);
    const places = editor.places('');
    for (const [, place] of places) place.show(null);
    for (const [path, text] of problems) (placeFor(places, path)?.place ?? placeOf(problem, problem)).show(text);
    if (problems.size === 0) answer({ action: 'accept', content });
  };
  return h('form', { class: 'question', onsubmit: (event) => { event.preventDefault(); accept(); } },
    h('p', { class: 'message' }, message), editor.element, problem,
    h('div', { class: 'line' }, h('button', { class: 'main' }, 'Answer'),
      button('Decline', () => answer({ action: 'decline' }), { class: 'plain' })));
}

/** The elements for everything that an outcome asks for. `repeat` calls again, in MCP with responses. */
export function requestsIn(outcome, repeat) {
  const challenges = (outcome.challenges ?? []).map((challenge) => challengeElement(challenge, () => repeat()));
  const responses = {};
  const requests = outcome.requests ?? [];
  const answer = (key) => (response) => {
    responses[key] = response;
    if (Object.keys(responses).length === requests.length) {
      repeat({ inputResponses: responses, ...(outcome.state !== undefined && { requestState: outcome.state }) });
    }
  };
  const questions = requests.map(({ key, mode, url, checkUrl, message, requestedSchema }) => (mode === 'url'
    ? challengeElement({ provider: key.replace(/^authorize:/, ''), url, checkUrl: checkUrl ?? checkUrlOf(url), message },
      () => answer(key)({ action: 'accept' }))
    : questionElement({ message, requestedSchema }, answer(key))));
  return [...challenges, ...questions];
}

/** MCP names only the page of a challenge; its status is next to it. */
const checkUrlOf = (url) => (/\/authorization\/challenges\/[^/]+\/start$/.test(url) ? url.replace(/\/start$/, '') : '');

const inMs = (ms) => `${ms < 10 ? Math.round(ms * 10) / 10 : Math.round(ms)} ms`;

export const inSeconds = (ms) => counted(Math.ceil(ms / 100) / 10, 'second');

const TITLES = { value: 'Succeeded', failure: 'The tool failed', rejection: 'The call was rejected', unreadable: 'The call failed', question: 'The tool has a question' };

/** The facts of a call in one line. */
function factsOf(response, outcome) {
  return [
    response.status ? `Status ${response.status}` : 'No response',
    `${inMs(response.ms)} measured here`,
    isNumber(outcome.reportedMs) && `${inMs(numberOf(outcome.reportedMs))} reported by the server`,
    outcome.isReplay && 'a replay of the first call with this id: the tool did not run again',
  ].filter(Boolean).join(' · ');
}

/** When the same call may succeed. */
function adviceOf({ kind, canRetry, waitMs, waitSeconds }) {
  const wait = waitMs !== undefined ? inSeconds(numberOf(waitMs)) : /^\d+$/.test(waitSeconds ?? '') ? counted(Number(waitSeconds), 'second') : null;
  if (wait) return `The same call may succeed after ${wait}.`;
  if (canRetry === true) return 'The same call may succeed later.';
  return kind === 'failure' && canRetry === false ? 'The same call would fail again.' : null;
}

const isBase64 = (text) => typeof text === 'string' && text.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(text);

/** One block of content: text, an image, or a link to the bytes. */
function contentBlock(block, index) {
  if (block.type === 'text') return codeBlock(block.text, `Text ${index + 1}`);
  const type = typeof block.mimeType === 'string' ? block.mimeType : 'application/octet-stream';
  if (!isBase64(block.data)) return h('p', { class: 'hint' }, `Content ${index + 1} (${type}) cannot be shown.`);
  // Not SVG, which can draw for minutes.
  if (/^image\/(png|jpeg|gif|webp|avif)$/.test(type)) {
    return h('img', { src: `data:${type};base64,${block.data}`, alt: `Image ${index + 1} from the tool` });
  }
  const bytes = Uint8Array.from(atob(block.data), (character) => character.charCodeAt(0));
  // Not with the tool's own media type: the browser must save the bytes, not show them.
  const save = () => {
    const url = URL.createObjectURL(new Blob([bytes], { type: 'application/octet-stream' }));
    h('a', { href: url, download: `content-${index + 1}` }).click();
    setTimeout(() => URL.revokeObjectURL(url), 10_000);
  };
  return h('p', {}, `${type}, ${counted(bytes.length, 'byte')} `, button('Save', save, { class: 'plain', 'aria-label': `Save content ${index + 1}` }));
}

function valueOf({ value, content }) {
  const blocks = (content ?? []).map(contentBlock);
  const hasValue = value !== undefined && !content?.length;
  return [...blocks, hasValue && codeBlock(pretty(value), 'Value')].filter(Boolean);
}

/** A request or a response as it went over the network, without the credential. */
function exchangePart(title, start, headers, body) {
  const lines = headers.map(([name, value]) => `${name}: ${value}`);
  return h('details', {}, h('summary', {}, title), codeBlock([start, ...lines, '', body].join('\n'), title));
}

function exchangeOf(request, response) {
  const body = jsonOf(response);
  const start = response.status ? `HTTP ${response.status}` : 'No response';
  const hidden = hasCredential() ? [['authorization', 'Bearer (hidden)']] : [];
  return [
    exchangePart('Request', `POST ${urlOf(request.path)}`, [...request.headers, ...hidden], pretty(request.body)),
    exchangePart('Response', start, response.headers, body === undefined ? response.text : pretty(body)),
  ];
}

/** The whole result of a call. `more` are elements for challenges and questions. */
export function resultOf({ request, response, outcome, unplaced, more }) {
  const isGood = outcome.kind === 'value';
  const placed = (outcome.errors ?? []).length - unplaced.length;
  const messages = [outcome.message, outcome.detail].filter((text) => typeof text === 'string' && text);
  const advice = adviceOf(outcome);
  const heading = h('h3', { id: 'result', tabindex: '-1' }, TITLES[outcome.kind]);
  const element = h('section', { class: `result ${isGood ? 'good' : outcome.kind}`, 'aria-labelledby': 'result' },
    heading,
    h('p', { class: 'facts' }, factsOf(response, outcome)),
    ...(isGood ? [] : messages.map((text) => h('p', { class: 'message' }, text))),
    unplaced.length > 0 && h('ul', {}, ...unplaced.map(([path, message]) => h('li', {}, h('code', {}, path), ` ${message}`))),
    placed > 0 && h('p', {}, `${counted(placed, 'message')} above, at the ${placed === 1 ? 'field' : 'fields'}.`),
    outcome.prompt && h('p', {}, h('strong', {}, 'For the model: '), outcome.prompt),
    advice && h('p', { class: 'advice' }, advice),
    ...(isGood ? valueOf(outcome) : []), ...more,
    h('div', { class: 'exchange' }, ...exchangeOf(request, response)));
  return { element, heading };
}
