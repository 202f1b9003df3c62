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

/** The messages for a value, by path. The value as a whole has an empty path. */
function check(given, root, value, path = '', errors = new Map(), depth = 0) {
  const add = (message, place = path) => {
    if (!errors.has(place)) errors.set(place, message);
  };
  if (depth > 40) return errors;
  const { schema, nullable } = plainSchema(given, root);
  if (value === null && nullable) return errors;
  const types = [schema.type ?? []].flat().filter((type) => Object.hasOwn(TYPES, type));
  if (types.length && !types.some((type) => TYPES[type][1](value))) {
    add(`Must be ${types.map((type) => TYPES[type][0]).join(' or ')}`);
    return errors;
  }
  const constants = constantsOf(schema, root);
  if (constants && !constants.some((constant) => isSame(constant.value, value))) {
    add(`Must be one of: ${constants.map((constant) => shown(constant.value)).join(', ')}`);
  } else if ('const' in schema && !isSame(schema.const, value)) {
    add(`Must be ${shown(schema.const)}`);
  } else if (!constants && (schema.oneOf ?? schema.anyOf)) {
    for (const [place, message] of errorsOfClosest(schema, root, value, path, depth)) add(message, place);
    return errors;
  }
  if (isNumber(value)) checkNumber(schema, numberOf(value), add);
  else if (typeof value === 'string') checkText(schema, value, add);
  else if (Array.isArray(value)) checkList(schema, root, value, path, errors, add, depth);
  else if (isObject(value)) checkObject(schema, root, value, path, errors, add, depth);
  return errors;
}

/** The form of a schema that a value satisfies, or else the one with the fewest errors. */
function closestForm(schema, root, value, depth = 0) {
  const forms = formsOf(schema, root);
  const results = forms.map((form, index) => {
    const errors = check(form, root, value, '', new Map(), depth + 1);
    const isTagged = Object.entries(form.properties ?? {}).some(([name, property]) =>
      isObject(property) && 'const' in property && isSame(property.const, own(value, name)));
    return { form, index, errors, cost: errors.size - (isTagged ? 1000 : 0) };
  });
  return results.reduce((best, result) => (result.cost < best.cost ? result : best));
}

function errorsOfClosest(schema, root, value, path, depth) {
  const { form } = closestForm(schema, root, value, depth);
  return check(form, root, value, path, new Map(), depth + 1);
}

function checkNumber(schema, value, add) {
  if (value < schema.minimum) add(`Must be at least ${shown(schema.minimum)}`);
  else if (value > schema.maximum) add(`Must be at most ${shown(schema.maximum)}`);
  else if (value <= schema.exclusiveMinimum) add(`Must be greater than ${shown(schema.exclusiveMinimum)}`);
  else if (value >= schema.exclusiveMaximum) add(`Must be less than ${shown(schema.exclusiveMaximum)}`);
  else if (Number.isInteger(schema.multipleOf) && value % schema.multipleOf !== 0) {
    add(`Must be a multiple of ${schema.multipleOf}`);
  }
}

function matches(pattern, text) {
  try {
    return new RegExp(pattern, 'u').test(text);
  } catch {
    return true; // a pattern of another dialect
  }
}

function checkText(schema, value, add) {
  const length = [...value].length;
  if (length < schema.minLength) {
    add(schema.minLength === 1 ? 'Must not be empty' : `Must be at least ${counted(schema.minLength, 'character')} long`);
  } else if (length > schema.maxLength) add(`Must be at most ${counted(schema.maxLength, 'character')} long`);
  else if (typeof schema.pattern === 'string' && !matches(schema.pattern, value)) {
    add(`Must match the pattern ${schema.pattern}`);
  }
}

function checkList(schema, root, value, path, errors, add, depth) {
  if (value.length < schema.minItems) {
    add(schema.minItems === 1 ? 'Must not be empty' : `Must have at least ${counted(schema.minItems, 'item')}`);
  } else if (value.length > schema.maxItems) add(`Must have at most ${counted(schema.maxItems, 'item')}`);
  else if (schema.uniqueItems === true && new Set(value.map((item) => JSON.stringify(item))).size < value.length) {
    add('Must not contain the same item twice');
  }
  if (!isObject(schema.items) || schema.prefixItems) return;
  value.forEach((item, index) => check(schema.items, root, item, `${path}[${index}]`, errors, depth + 1));
}

function checkObject(schema, root, value, path, errors, add, depth) {
  for (const name of schema.required ?? []) {
    if (!Object.hasOwn(value, name)) add('Is required', joinedPath(path, name));
  }
  for (const [name, property] of Object.entries(value)) {
    const rule = own(schema.properties, name);
    if (rule !== undefined) check(rule, root, property, joinedPath(path, name), errors, depth + 1);
    else if (isObject(schema.additionalProperties)) {
      check(schema.additionalProperties, root, property, joinedPath(path, name), errors, depth + 1);
    } else if (schema.additionalProperties === false && !schema.patternProperties) {
      add(path ? 'Is not a known property' : 'Is not a parameter of this tool', joinedPath(path, name));
    }
  }
}
