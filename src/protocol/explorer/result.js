// Showing what a call returned, and the request and the response behind it.

const inMs = (ms) => `${ms < 10 ? Math.round(ms * 10) / 10 : Math.round(ms)} ms`;

const inSeconds = (ms) => counted(Math.ceil(ms / 100) / 10, 'second');

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
  if (canRetry === true || waitMs !== undefined || wait) {
    return wait ? `The same call may succeed after ${wait}.` : 'The same call may succeed later.';
  }
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
  const hidden = credential ? [['authorization', 'Bearer (hidden)']] : [];
  return [
    exchangePart('Request', `POST ${urlOf(request.path)}`, [...request.headers, ...hidden], pretty(request.body)),
    exchangePart('Response', start, response.headers, body === undefined ? response.text : pretty(body)),
  ];
}

/** The whole result of a call. `more` are elements for challenges and questions. */
function resultOf({ request, response, outcome, unplaced, more }) {
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
