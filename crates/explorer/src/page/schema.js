// JSON Schema: what kind of control a schema needs, and its limits in words.

import { isObject, isRaw, isSame, own, record, typeOf } from './json.js';
import { counted, decoded } from './dom.js';

/** The longest chain of references that is followed. */
const MAX_REFERENCES = 20;

const asSchema = (schema) => (schema === false ? { not: {} } : isObject(schema) ? schema : {});

/** Follows references to places in the same document. */
function resolved(schema, root) {
  let current = asSchema(schema);
  for (let count = 0; typeof current.$ref === 'string' && count < MAX_REFERENCES; count += 1) {
    const { $ref, ...others } = current;
    current = merged(asSchema(targetOf($ref, root)), others);
  }
  return current;
}

/** The place that a JSON Pointer in a reference names; undefined for other references. */
function targetOf(reference, root) {
  if (!/^#(\/|$)/.test(reference)) return undefined;
  const names = decoded(reference.slice(1))?.split('/').slice(1);
  const name = (text) => text.replaceAll('~1', '/').replaceAll('~0', '~');
  return names?.reduce((place, text) =>
    (Array.isArray(place) ? place[Number(text)] : own(place, name(text))), root);
}

/** Both schemas' rules for one value; the second one's where they differ. */
function merged(one, other) {
  const both = { ...one, ...other };
  if (one.properties && other.properties) {
    both.properties = record([...Object.entries(one.properties), ...Object.entries(other.properties)]);
  }
  if (one.required && other.required) both.required = [...new Set([...one.required, ...other.required])];
  return both;
}

const isNullSchema = (schema) => schema.type === 'null' || ('const' in schema && schema.const === null);

/** A schema without references, `allOf` and null, and whether null is allowed. */
export function plainSchema(given, root) {
  let schema = resolved(given, root);
  let nullable = schema.nullable === true;
  if (Array.isArray(schema.allOf)) {
    const { allOf, ...others } = schema;
    const parts = allOf.map((part) => plainSchema(part, root));
    nullable ||= parts.some((part) => part.nullable);
    schema = parts.reduceRight((all, part) => merged(part.schema, all), others);
  }
  if (Array.isArray(schema.type)) {
    const types = schema.type.filter((type) => type !== 'null');
    nullable ||= types.length < schema.type.length;
    schema = { ...schema, type: types.length === 1 ? types[0] : types };
  }
  if (Array.isArray(schema.enum) && schema.enum.includes(null) && schema.enum.length > 1) {
    nullable = true;
    schema = { ...schema, enum: schema.enum.filter((value) => value !== null) };
  }
  for (const keyword of ['oneOf', 'anyOf']) {
    if (!Array.isArray(schema[keyword])) continue;
    const { [keyword]: branches, ...others } = schema;
    const rest = branches.filter((branch) => !isNullSchema(resolved(branch, root)));
    nullable ||= rest.length < branches.length;
    if (rest.length !== 1) schema = { ...others, [keyword]: rest };
    else {
      const only = plainSchema(rest[0], root);
      nullable ||= only.nullable;
      schema = merged(only.schema, others);
    }
  }
  return { schema, nullable };
}

/** The branches that a value may have, each with the rules that they share. */
export function branchesOf(schema, root) {
  const { oneOf, anyOf, ...shared } = schema;
  return (oneOf ?? anyOf).map((branch) => {
    const { description, ...rules } = shared;
    return merged(rules, plainSchema(branch, root).schema);
  });
}

/** The index of the branch that fits a value best: first by its constants and its type, then by its properties. */
export function closestBranch(branches, value) {
  const costs = branches.map((branch) => costOf(branch, value));
  return costs.indexOf(Math.min(...costs));
}

function costOf(branch, value) {
  const types = [branch.type ?? []].flat().map((type) => (type === 'integer' ? 'number' : type));
  const names = Object.keys(isObject(value) ? value : {});
  const properties = branch.properties ?? {};
  const isOther = (rule, part) => isObject(rule) && 'const' in rule && !isSame(rule.const, part);
  const wrong = names.filter((name) => isOther(own(properties, name), value[name])).length;
  const missing = (branch.required ?? []).filter((name) => !names.includes(name)).length;
  const unknown = names.filter((name) => !Object.hasOwn(properties, name)).length;
  const isWrong = isOther(branch, value) || (types.length > 0 && !types.includes(typeOf(value)));
  return (isWrong + wrong) * 1000 + missing + unknown;
}

const isScalar = (value) => value === null || typeof value !== 'object' || isRaw(value);

/** The values of a choice among constants, each with its description; null if it is anything else. */
export function constantsOf(schema, root) {
  if (Array.isArray(schema.enum) && schema.enum.every(isScalar)) return schema.enum.map((value) => ({ value }));
  if (schema.type === 'boolean') return [{ value: true }, { value: false }];
  const branches = schema.oneOf ?? schema.anyOf;
  if (!Array.isArray(branches)) return null;
  const plain = branches.map((branch) => plainSchema(branch, root).schema);
  const isConstant = (branch) =>
    ('const' in branch && isScalar(branch.const)) || (Array.isArray(branch.enum) && branch.enum.every(isScalar));
  if (!plain.every(isConstant)) return null;
  return plain.flatMap((branch) =>
    ('const' in branch ? [branch.const] : branch.enum).map((value) => ({ value, description: branch.description })));
}

/** The kind of control for a plain schema. */
export function kindOf(schema, root) {
  if ('const' in schema) return 'fixed';
  if (constantsOf(schema, root)) return 'constants';
  if (Array.isArray(schema.oneOf ?? schema.anyOf)) return 'branches';
  const hasProperties = isObject(schema.properties) && Object.keys(schema.properties).length > 0;
  if (hasProperties && (schema.type ?? 'object') === 'object') return 'object';
  if (schema.type === 'object') return schema.additionalProperties === false ? 'object' : 'json';
  if (schema.type === 'array') {
    return isObject(schema.items) && !schema.prefixItems ? 'list' : 'json';
  }
  return ['string', 'number', 'integer'].includes(schema.type) ? schema.type : 'json';
}

export const shown = (value) => (typeof value === 'string' ? value : JSON.stringify(value));

/** "1 to 40 characters" */
function range(least, most, one, many) {
  if (least !== undefined && most !== undefined) {
    return least === most ? counted(least, one, many) : `${least} to ${counted(most, one, many)}`;
  }
  if (least !== undefined) return `at least ${counted(least, one, many)}`;
  return most === undefined ? null : `at most ${counted(most, one, many)}`;
}

function numberRange({ minimum: least, maximum: most, exclusiveMinimum: above, exclusiveMaximum: below }) {
  if (least !== undefined && most !== undefined) return `${shown(least)} to ${shown(most)}`;
  const parts = [
    least !== undefined && `at least ${shown(least)}`, above !== undefined && `greater than ${shown(above)}`,
    most !== undefined && `at most ${shown(most)}`, below !== undefined && `less than ${shown(below)}`,
  ];
  return parts.filter(Boolean).join(', ') || null;
}

/** A schema's limits in words. */
export function limitsOf(schema) {
  const types = Array.isArray(schema.type) ? schema.type.join(' or ') : schema.type;
  const parts = [
    ['integer', 'number'].includes(types) && types,
    numberRange(schema),
    schema.multipleOf !== undefined && `a multiple of ${shown(schema.multipleOf)}`,
    range(schema.minLength, schema.maxLength, 'character', 'characters'),
    schema.pattern !== undefined && `pattern ${schema.pattern}`,
    schema.format !== undefined && `format ${schema.format}`,
    schema.contentEncoding !== undefined && `encoded in ${schema.contentEncoding}`,
    range(schema.minItems, schema.maxItems, 'item', 'items'),
    schema.uniqueItems === true && 'no item twice',
    range(schema.minProperties, schema.maxProperties, 'property', 'properties'),
    schema.default !== undefined && `default ${shown(schema.default)}`,
  ];
  return parts.filter(Boolean).join(', ');
}

/** The name of one of several branches. */
export function branchName(branch, number) {
  const properties = Object.entries(branch.properties ?? {});
  const constant = properties.map(([, value]) => own(value, 'const')).find((value) => typeof value === 'string');
  const required = branch.required ?? [];
  if (typeof branch.title === 'string') return branch.title;
  if (constant !== undefined) return constant;
  if (branch.type === 'object' && required.length === 1) return required[0];
  if (Array.isArray(branch.enum)) return branch.enum.map(shown).join(', ');
  return typeof branch.type === 'string' ? branch.type : `branch ${number}`;
}
