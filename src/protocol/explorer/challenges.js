// The requests of a call to its user: access to an account at a provider, or the answer to a question.

/** The time between two checks, and the longest time for all of them. */
const CHECK_EVERY = 1500;
const CHECK_FOR = 10 * 60 * 1000;

/** A URL that a browser may open; null for any other, such as one that runs a script. */
function safeUrl(text) {
  try {
    const url = new URL(text);
    return ['https:', 'http:'].includes(url.protocol) ? url : null;
  } catch {
    return null;
  }
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
function requestsIn(outcome, repeat) {
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
