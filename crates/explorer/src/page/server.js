// Requests to this server, and to no other. The credential is kept in this variable only.

import { jsonIn } from './json.js';

let credential = '';

export const hasCredential = () => credential !== '';

export const setCredential = (given) => { credential = given; };

/** The page's own location without the page: `/` at the end, also if the browser's address lacks it. */
export const BASE = `${location.origin}${location.pathname.replace(/\/*$/, '')}/`;

export const urlOf = (path) => `${BASE}${path}`;

/** A header's value may have only these characters. */
export const isSendable = (text) => /^[\x21-\x7e]+$/.test(text);

/** Sends a request; the result has a status of 0 if there was no response. */
export async function send(path, { method = 'GET', headers = {}, body } = {}) {
  const sent = credential ? { ...headers, authorization: `Bearer ${credential}` } : headers;
  const begun = performance.now();
  try {
    const response = await fetch(urlOf(path), {
      method, headers: sent, body, cache: 'no-store', credentials: 'same-origin', redirect: 'error',
    });
    const text = await response.text();
    return { status: response.status, headers: [...response.headers], text, ms: performance.now() - begun };
  } catch (error) {
    return { status: 0, headers: [], text: '', ms: performance.now() - begun, problem: error.message };
  }
}

export const headerOf = (response, name) => response.headers.find(([given]) => given.toLowerCase() === name)?.[1];

/** The body of a response as JSON; undefined if it is anything else. */
export const jsonOf = (response) => jsonIn(response.text);
