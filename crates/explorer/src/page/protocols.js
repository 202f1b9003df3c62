// The protocols: requests of a call, and what the responses say. A response is read into an outcome:
// {kind: 'value' | 'failure' | 'rejection' | 'question', …}, or 'unreadable' if the page cannot do so.

import { isObject } from './json.js';
import { plainSchema } from './schema.js';
import { headerOf, jsonOf } from './server.js';

const MCP_REVISION = '2026-07-28';
const MCP_META = 'io.modelcontextprotocol';

const JSON_TYPE = ['content-type', 'application/json'];

export const PROTOCOLS = {
  Oxp: { label: 'OXP', path: 'tools/call', anyVersion: true, request: oxpRequest, read: oxpOutcome },
  Mcp: { label: 'MCP', path: 'mcp', anyVersion: false, request: mcpRequest, read: mcpOutcome },
  OpenTool: { label: 'OpenTool', path: 'opentool/call', anyVersion: false, request: openToolRequest, read: openToolOutcome },
};

/** The parts of a request. `call` has the input, the call id, the user, secrets and tokens. */
export function requestOf(protocol, tool, call) {
  const { path, request } = PROTOCOLS[protocol];
  const { headers, body } = request(tool, call);
  return { method: 'POST', path, headers: [JSON_TYPE, ...headers], body };
}

function oxpRequest(tool, { input, callId, userId, secrets, tokens }) {
  const context = {
    ...(userId && { user_id: userId }),
    ...(tokens.length && { authorization: tokens.map(({ id, value }) => ({ id, token: value })) }),
    ...(secrets.length && { secrets }),
  };
  const body = { tool_id: tool.id, call_id: callId, input, ...(Object.keys(context).length && { context }) };
  return { headers: [['oxp-version', '1.0']], body };
}

function mcpRequest(tool, { input, callId, answers }) {
  const _meta = {
    [`${MCP_META}/protocolVersion`]: MCP_REVISION,
    [`${MCP_META}/clientCapabilities`]: { elicitation: { form: {}, url: {} } },
    'lambda-tools/call-id': callId,
  };
  const [method, target] = mcpTarget(tool, input);
  const headers = [
    ['accept', 'application/json, text/event-stream'], ['mcp-protocol-version', MCP_REVISION],
    ['mcp-method', method], ['mcp-name', target.uri ?? target.name],
  ];
  return { headers, body: { jsonrpc: '2.0', id: 1, method, params: { ...target, ...answers, _meta } } };
}

/** The method and its own params: also of a resource or a prompt. */
function mcpTarget({ name, uri, is_read: isRead }, input) {
  if (!uri) return [isRead ? 'prompts/get' : 'tools/call', { name, arguments: input }];
  return ['resources/read', { uri: uri.replace(/\{(\w+)\}/g, (_, variable) => encodeURIComponent(input[variable] ?? '')) }];
}

function openToolRequest(tool, { input, callId }) {
  return { headers: [], body: { jsonrpc: '2.0', id: callId, method: tool.name, params: input } };
}

/** The outcome of a response: that of its protocol, and what all of them have. */
export function outcomeOf(protocol, tool, response) {
  const body = jsonOf(response);
  const common = {
    isReplay: headerOf(response, 'idempotent-replay') === 'true',
    waitSeconds: headerOf(response, 'retry-after'),
  };
  if (response.status === 0) {
    return { ...common, kind: 'rejection', message: `There was no response: ${response.problem}.` };
  }
  if (!isObject(body)) {
    return { ...common, kind: 'rejection', message: `The response is not JSON (status ${response.status}).` };
  }
  return { ...common, ...PROTOCOLS[protocol].read(tool, response, body) };
}

function oxpOutcome(tool, response, body) {
  const common = { callId: body.call_id, reportedMs: body.duration };
  if (body.success === true) return { ...common, kind: 'value', value: body.value, content: contentIn(tool, body.value) };
  if (isObject(body.error)) {
    return {
      ...common,
      kind: 'failure',
      message: body.error.message,
      detail: body.error.developer_message,
      prompt: body.error.additional_prompt_content,
      canRetry: body.error.can_retry,
      waitMs: body.error.retry_after_ms,
    };
  }
  const missing = isObject(body.missing_requirements) ? body.missing_requirements : null;
  const providers = tool.requirements?.authorization ?? [];
  const challenges = (missing?.authorization ?? []).map(({ url, check_url: checkUrl }, index, all) => ({
    provider: all.length === providers.length ? providers[index].id : 'the provider', url, checkUrl,
  }));
  return {
    kind: 'rejection',
    message: body.message,
    detail: body.developer_message,
    errors: Object.entries(body.parameter_errors ?? {}),
    missing,
    challenges,
  };
}

/** Content in a value, as MCP's blocks. */
function contentIn(tool, value) {
  if (!tool.returns_content) return null;
  return [value].flat().filter(isObject).map(({ media_type: mimeType, text, data }) =>
    (typeof text === 'string' ? { type: 'text', text } : { type: 'data', mimeType, data }));
}

/** A value that is not an object is wrapped, as `{result: …}` in MCP and `{value: …}` in OpenTool. */
function unwrapped(tool, value, name) {
  const output = plainSchema(tool.output_schema ?? {}, tool.output_schema).schema;
  const isWrapped = output.type !== 'object' && isObject(value) && Object.keys(value).join() === name;
  return isWrapped ? value[name] : value;
}

function mcpOutcome(tool, response, body) {
  if (isObject(body.error)) return { kind: 'rejection', message: body.error.message, detail: jsonDetail(body.error.data) };
  const result = isObject(body.result) ? body.result : {};
  const meta = isObject(result._meta) ? result._meta : {};
  const common = { callId: meta['lambda-tools/call-id'], waitMs: meta['lambda-tools/retry-after-ms'] };
  if (result.resultType === 'input_required') {
    const requests = Object.entries(result.inputRequests ?? {}).map(([key, request]) => ({ key, ...request.params }));
    return { ...common, kind: 'question', message: 'The tool asks its user.', requests, state: result.requestState };
  }
  const items = result.content ?? result.contents ?? (Array.isArray(result.messages) ? result.messages.map(({ content }) => content) : []);
  const blocks = (Array.isArray(items) ? items : []).map(blockOf);
  const text = blocks.map((block) => block.text ?? '').join('\n');
  if (result.isError) {
    return { ...common, kind: 'failure', message: text, errors: Object.entries(meta['lambda-tools/parameter-errors'] ?? {}) };
  }
  const hasValue = 'structuredContent' in result;
  const value = hasValue ? unwrapped(tool, result.structuredContent, 'result') : undefined;
  // The text of a structured result repeats it.
  return { ...common, kind: 'value', value, content: hasValue ? null : blocks };
}

const jsonDetail = (data) => (data === undefined ? undefined : JSON.stringify(data));

function blockOf(block) {
  if (block.type === 'text') return { type: 'text', text: block.text };
  const { mimeType, data, blob, text, uri } = { ...block, ...block.resource };
  return typeof text === 'string' ? { type: 'text', text, uri } : { type: 'data', mimeType, data: data ?? blob, uri };
}

function openToolOutcome(tool, response, body) {
  if (isObject(body.error)) {
    const isFailure = body.error.code === 500;
    return { kind: isFailure ? 'failure' : 'rejection', message: body.error.message, callId: body.id };
  }
  const value = unwrapped(tool, body.result, 'value');
  const isNothing = tool.output_schema === null && isObject(value) && Object.keys(value).length === 0;
  const shownValue = isNothing ? null : value;
  return { kind: 'value', value: shownValue, content: contentIn(tool, shownValue), callId: body.id };
}
