// JSON without loss: integers beyond 2^53 keep their digits in browsers that can do so.

const isRaw = (value) => JSON.isRawJSON?.(value) ?? false;

const isObject = (value) =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !isRaw(value);

const isNumber = (value) => typeof value === 'number' || isRaw(value);

const typeOf = (value) =>
  (value === null ? 'null' : Array.isArray(value) ? 'array' : isRaw(value) ? 'number' : typeof value);

const numberOf = (value) => (isRaw(value) ? Number(value.rawJSON) : value);

/** The number that a text denotes, with all its digits. */
function exactNumber(text) {
  const number = Number(text);
  const isExact = Number.isSafeInteger(number) || (Number.isFinite(number) && !/^-?\d+$/.test(text));
  return isExact || !JSON.rawJSON ? number : JSON.rawJSON(text);
}

/** Throws a SyntaxError. */
const parseJson = (text) =>
  JSON.parse(text, (_, value, context) =>
    typeof value === 'number' && context?.source ? exactNumber(context.source) : value);

const pretty = (value) => JSON.stringify(value, null, 2);

const isSame = (one, other) => JSON.stringify(one) === JSON.stringify(other);

/** An object without a prototype, so that a property may be called `__proto__`. */
const record = (entries = []) => {
  const object = Object.create(null);
  for (const [name, value] of entries) object[name] = value;
  return object;
};

/** An object's own property: names come from schemas and may be `constructor`. */
const own = (object, name) =>
  (isObject(object) && Object.hasOwn(object, name) ? object[name] : undefined);
