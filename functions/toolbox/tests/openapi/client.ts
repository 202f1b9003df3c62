// Calls the calculator with types generated from the document: node client.ts URL KEY. tsc checks this file first.
import createClient from 'openapi-fetch';
import type { paths } from './schema.d.ts';

declare const process: { argv: string[] };

const [baseUrl, key] = process.argv.slice(2);
const client = createClient<paths>({ baseUrl, headers: { 'OXP-API-Key': key } });

const sum = await client.POST('/tools/Calculator.Add@1.0.0/call', { body: { a: 10, b: 5 } });
const value: number | undefined = sum.data;

// @ts-expect-error: the types of parameters are checked when the program is compiled.
const invalid = await client.POST('/tools/Calculator.Add@1.0.0/call', { body: { a: 'ten', b: 5 } });
const message: string | undefined = invalid.error?.message;
const errors = invalid.response.status === 422 && invalid.error && 'parameter_errors' in invalid.error
  ? invalid.error.parameter_errors : undefined;

const failed = await client.POST('/tools/Calculator.Add@1.0.0/call', { body: { a: 1e308, b: 1e308 } });

console.log(JSON.stringify({
  value, message, errors, status: invalid.response.status, failed: failed.response.status, failure: failed.error,
}));
