// JSON without loss: integers beyond 2^53 keep their digits in browsers that can do so.

export const isRaw = (value) => JSON.isRawJSON?.(value) ?? false;

export const isObject = (value) =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !isRaw(value);

export const isNumber = (value) => typeof value === 'number' || isRaw(value);

export const typeOf = (value) =>
  (value === null ? 'null' : Array.isArray(value) ? 'array' : isRaw(value) ? 'number' : typeof value);

export const numberOf = (value) => (isRaw(value) ? Number(value.rawJSON) : value);

/** The number that a text denotes, with all its digits. */
export function exactNumber(text) {
  const number = Number(text);
  const isExact = Number.isSafeInteger(number) || (Number.isFinite(number) && !/^-?\d+$/.test(text));
  return isExact || !JSON.rawJSON ? number : JSON.rawJSON(text);
}

/** Throws a SyntaxError. */
export const parseJson = (text) =>
  JSON.parse(text, (_, value, context) =>
    typeof value === 'number' && context?.source ? exactNumber(context.source) : value);

/** The value of a JSON text; undefined if it is anything else. */
export function jsonIn(text) {
  try {
    return parseJson(text);
  } catch {
    return undefined;
  }
}

export const pretty = (value) => JSON.stringify(value, null, 2);

export const isSame = (one, other) => JSON.stringify(one) === JSON.stringify(other);

/** An object without a prototype, so that a property may be called `__proto__`. */
export const record = (entries = []) => Object.assign(Object.create(null), Object.fromEntries(entries));

/** An object's own property: names come from schemas and may be `constructor`. */
export const own = (object, name) =>
  (isObject(object) && Object.hasOwn(object, name) ? object[name] : undefined);
