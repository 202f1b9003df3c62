// Checking an input before it is sent, in the words of the server. The server has the last word: this
// check knows the frequent rules, and lets everything else pass.

const joinedPath = (path, name) => (path ? `${path}.${name}` : name);

const TYPES = {
  array: ['an array', Array.isArray],
  boolean: ['a boolean', (value) => typeof value === 'boolean'],
  integer: ['an integer', (value) => isRaw(value) || Number.isInteger(value)],
  null: ['null', (value) => value === null],
  number: ['a number', isNumber],
  object: ['an object', isObject],
  string: ['a string', (value) => typeof value === 'string'],
};

/** The steps that one check may take, and those for each value: a check must not stop the page. */
const MAX_STEPS = 1e8;
const STEPS_OF_VALUE = 5000;

/** The messages for an input, by path; those for the input as a whole have an empty path. */
function check(schema, value) {
  try {
    return checkValue({ root: schema, steps: MAX_STEPS }, schema, value);
  } catch (error) {
    // Such as a schema that contains itself: the server decides.
    console.info(`The input cannot be checked here: ${error.message}`);
    return new Map();
  }
}

/** False if the run has too few steps left: then the rule is left to the server. */
function spend(run, steps) {
  if (steps > run.steps) return false;
  run.steps -= steps;
  return true;
}

function checkValue(run, given, value, path = '', errors = new Map(), depth = 0) {
  const add = (message, place = path) => {
    if (!errors.has(place)) errors.set(place, message);
  };
  if (depth > 40 || !spend(run, STEPS_OF_VALUE)) return errors;
  const { schema, nullable } = plainSchema(given, run.root);
  const isUnion = Array.isArray(schema.oneOf ?? schema.anyOf);
  if (value === null && (nullable || isUnion)) return errors;
  const types = [schema.type ?? []].flat().filter((type) => Object.hasOwn(TYPES, type));
  if (types.length && !types.some((type) => TYPES[type][1](value))) {
    add(`Must be ${types.map((type) => TYPES[type][0]).join(' or ')}`);
    return errors;
  }
  const constants = constantsOf(schema, run.root);
  if (constants && !constants.some((constant) => isSame(constant.value, value))) {
    add(`Must be one of: ${constants.map((constant) => shown(constant.value)).join(', ')}`);
  } else if ('const' in schema && isScalar(schema.const) && !isSame(schema.const, value)) {
    add(`Must be ${shown(schema.const)}`);
  } else if (!constants && isUnion) {
    for (const [place, message] of closestOf(run, schema, value, path, depth).errors) add(message, place);
    return errors;
  }
  if (isNumber(value)) checkNumber(schema, numberOf(value), add);
  else if (typeof value === 'string') checkText(run, schema, value, add);
  else if (Array.isArray(value)) checkList(run, schema, value, path, errors, add, depth);
  else if (isObject(value)) checkObject(run, schema, value, path, errors, add, depth);
  return errors;
}

/** The index of the form that a value satisfies, or else of the closest one. */
const closestForm = (schema, root, value) => closestOf({ root, steps: MAX_STEPS }, schema, value, '', 0).index;

/** The closest form with its errors: one without any, or else the one whose constant the value has. */
function closestOf(run, schema, value, path, depth) {
  const results = formsOf(schema, run.root).map((form, index) => {
    const errors = checkValue(run, form, value, path, new Map(), depth + 1);
    const isTagged = Object.entries(form.properties ?? {}).some(([name, property]) =>
      isObject(property) && 'const' in property && isSame(property.const, own(value, name)));
    return { index, errors, cost: (errors.size && 2000 + errors.size) - (isTagged ? 1000 : 0) };
  });
  return results.reduce((best, result) => (result.cost < best.cost ? result : best));
}

function checkNumber(schema, value, add) {
  const limit = (name) => (isNumber(schema[name]) ? numberOf(schema[name]) : undefined);
  // Of larger numbers, JavaScript may know only the first digits.
  const isExact = Math.abs(value) <= Number.MAX_SAFE_INTEGER;
  if (value < limit('minimum')) add(`Must be at least ${shown(schema.minimum)}`);
  else if (value > limit('maximum')) add(`Must be at most ${shown(schema.maximum)}`);
  else if (isExact && value <= limit('exclusiveMinimum')) add(`Must be greater than ${shown(schema.exclusiveMinimum)}`);
  else if (isExact && value >= limit('exclusiveMaximum')) add(`Must be less than ${shown(schema.exclusiveMaximum)}`);
  else if (Number.isSafeInteger(value) && Number.isInteger(schema.multipleOf) && value % schema.multipleOf !== 0) {
    add(`Must be a multiple of ${schema.multipleOf}`);
  }
}

function matches(run, pattern, text) {
  if (!spend(run, stepsOf(pattern, text.length))) return true;
  try {
    return new RegExp(pattern, 'u').test(text);
  } catch {
    return true; // a pattern of another dialect
  }
}

function checkText(run, schema, value, add) {
  const length = [...value].length;
  if (length < schema.minLength) {
    add(schema.minLength === 1 ? 'Must not be empty' : `Must be at least ${counted(schema.minLength, 'character')} long`);
  } else if (length > schema.maxLength) add(`Must be at most ${counted(schema.maxLength, 'character')} long`);
  else if (typeof schema.pattern === 'string' && !matches(run, schema.pattern, value)) {
    add(`Must match the pattern ${schema.pattern}`);
  }
}

function checkList(run, schema, value, path, errors, add, depth) {
  if (value.length < schema.minItems) {
    add(schema.minItems === 1 ? 'Must not be empty' : `Must have at least ${counted(schema.minItems, 'item')}`);
  } else if (value.length > schema.maxItems) add(`Must have at most ${counted(schema.maxItems, 'item')}`);
  else if (schema.uniqueItems === true && new Set(value.map((item) => JSON.stringify(item))).size < value.length) {
    add('Must not contain the same item twice');
  }
  if (!isObject(schema.items) || schema.prefixItems) return;
  value.forEach((item, index) => checkValue(run, schema.items, item, `${path}[${index}]`, errors, depth + 1));
}

function checkObject(run, schema, value, path, errors, add, depth) {
  for (const name of schema.required ?? []) {
    if (!Object.hasOwn(value, name)) add('Is required', joinedPath(path, name));
  }
  for (const [name, property] of Object.entries(value)) {
    const rule = own(schema.properties, name);
    if (rule !== undefined) checkValue(run, rule, property, joinedPath(path, name), errors, depth + 1);
    else if (schema.patternProperties) continue; // the property may be one of these
    else if (isObject(schema.additionalProperties)) {
      checkValue(run, schema.additionalProperties, property, joinedPath(path, name), errors, depth + 1);
    } else if (schema.additionalProperties === false) {
      add(path ? 'Is not a known property' : 'Is not a parameter of this tool', joinedPath(path, name));
    }
  }
}
