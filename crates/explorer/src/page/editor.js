// The input of a call: a form and its JSON, which follow each other.

import { jsonIn, parseJson, pretty, record } from './json.js';
import { firstControl, h, newId } from './dom.js';
import { controlFor, jsonControl, placeOf } from './controls.js';

/** An editor for the input of one version of a tool. */
export function editorFor(schema) {
  const control = rootControl(schema);
  const error = h('p', { class: 'error', id: newId() });
  const json = h('textarea', {
    class: 'code', rows: '6', spellcheck: 'false', autocomplete: 'off', id: newId(), 'aria-describedby': error.id,
  });
  // The value is taken from where it was edited last: the form cannot show every value exactly.
  let isJson = false;
  const places = () => [...control.places('')];
  const showJson = () => {
    const value = control.read('', new Map());
    json.value = pretty(value);
    placeOf(json, error).show(null);
  };
  control.element.addEventListener('input', () => { isJson = false; showJson(); });
  json.addEventListener('input', () => {
    isJson = true;
    try {
      control.write(parseJson(json.value));
      placeOf(json, error).show(null);
    } catch (problem) {
      placeOf(json, error).show(`Is not valid JSON: ${problem.message}`);
    }
  });
  showJson();
  const read = () => {
    const problems = new Map();
    // A form without fields is an empty input.
    if (!isJson) return { value: control.read('', problems) ?? record(), problems };
    const value = jsonIn(json.value);
    return { value, problems, isInvalidJson: value === undefined };
  };
  return {
    element: h('div', { class: 'views' },
      h('div', { class: 'form' }, control.element),
      h('div', { class: 'field json' }, h('label', { for: json.id }, 'Input as JSON'), json, error)),
    read,
    focusJson: () => json.focus(),
    /** Shows errors at their fields; focuses the first one. Returns those that have no field. */
    show(errors) {
      for (const [, place] of places()) place.show(null);
      const shownAt = new Map();
      const others = [];
      const byPath = new Map(places().reverse());
      for (const [path, message] of errors) {
        const found = placeFor(byPath, path);
        if (!found) others.push([path, message]);
        else {
          const text = found.path === path ? message : `${path}: ${message}`;
          shownAt.set(found.place, [...(shownAt.get(found.place) ?? []), text]);
        }
      }
      for (const [place, texts] of shownAt) place.show(texts.join('; '));
      const inOrder = places().map(([, place]) => place.target).find((target) => isInvalid(target));
      if (inOrder) firstControl(inOrder)?.focus();
      return others;
    },
  };
}

/** A form for the input, or JSON alone if the schema is not one of an object. */
function rootControl(schema) {
  try {
    return controlFor(schema, schema, 'input', true, true);
  } catch (error) {
    console.warn(`The form cannot be made: ${error.message}`);
    return jsonControl({ schema: {}, root: schema, name: 'input', isRequired: true });
  }
}

const isInvalid = (target) =>
  target.getAttribute('aria-invalid') === 'true' || target.matches('fieldset.invalid, .optional.invalid, .fixed.invalid');

/** The place for a path, or for the closest value around it. */
export function placeFor(places, path) {
  for (let part = path; part; part = part.slice(0, Math.max(part.lastIndexOf('.'), part.lastIndexOf('['), 0))) {
    const place = places.get(part);
    if (place) return { path: part, place };
  }
  return null;
}
