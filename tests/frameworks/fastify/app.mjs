// An application of Fastify with what real ones have: app.mjs PORT serves it on 127.0.0.1, on a free port if PORT is 0,
// and prints its URL. Its document is at /openapi.json. Nothing is stored: each operation says what it got.
import cookie from '@fastify/cookie'
import formbody from '@fastify/formbody'
import multipart, { ajvFilePlugin } from '@fastify/multipart'
import swagger from '@fastify/swagger'
import fastify from 'fastify'

const app = fastify({ ajv: { plugins: [ajvFilePlugin], customOptions: { keywords: ['discriminator'] } } })
await app.register(swagger, {
  openapi: {
    openapi: '3.0.3',
    info: { title: 'Library API', version: '2.0.0' },
    components: {
      securitySchemes: {
        token: { type: 'http', scheme: 'bearer' },
        key: { type: 'apiKey', in: 'header', name: 'x-api-key' },
        session: { type: 'apiKey', in: 'cookie', name: 'session' },
      },
    },
  },
})
await app.register(cookie)
await app.register(formbody)
await app.register(multipart, { attachFieldsToBody: true })

const text = { type: 'string', minLength: 1 }
const zones = ['UTC', 'Europe/Berlin']
const uuid = { type: 'string', format: 'uuid' }
const colour = { type: 'string', enum: ['red', 'dark blue'] }
const object = (properties, required = [], more = {}) => ({ type: 'object', properties, required, ...more })
const day = { type: 'string', format: 'date' }
app.addSchema({ $id: 'Author', ...object({ name: text, born: { ...day, nullable: true } }, ['name']) })
app.addSchema({
  $id: 'Book',
  ...object(
    {
      title: { type: 'string', minLength: 2, maxLength: 60 },
      isbn: { type: 'string', pattern: '^[0-9]{13}$' },
      authors: { type: 'array', minItems: 1, items: { $ref: 'Author#' } },
      price: { type: 'number', minimum: 0, multipleOf: 0.5 },
      lent_for: { type: 'string', format: 'duration', description: 'How long it may be kept.' },
      published: { type: 'string', format: 'date-time' },
      opens: { type: 'string', format: 'time' },
      tags: { type: 'array', uniqueItems: true, maxItems: 5, items: text },
      ratings: { type: 'object', additionalProperties: { type: 'integer', minimum: 1, maximum: 5 } },
      size: { type: 'array', minItems: 2, maxItems: 2, items: { type: 'integer' } },
      home: { type: 'string', format: 'uri' },
      contact: { type: 'string', format: 'email' },
    },
    ['title', 'authors'],
    // The parser of this framework removes other fields without a word, and the document says so.
    { additionalProperties: false },
  ),
})
const card = object({ kind: { type: 'string', enum: ['card'] }, number: text }, ['kind', 'number'])
const cash = object({ kind: { type: 'string', enum: ['cash'] }, amount: { type: 'integer' } }, ['kind', 'amount'])
const payment = { oneOf: [card, cash], discriminator: { propertyName: 'kind' } }
const file = { isFile: true }
const got = async ({ params, query, cookies, body }) => ({ params, query, cookies, body })
const adds = (app, more) => (method, url, schema, handler = got) =>
  app.route({ method, url, schema: { ...more, ...schema }, handler })
const add = adds(app)

await app.register(async (app) => {
  const add = adds(app, { tags: ['books'] })
  const id = object({ id: uuid }, ['id'])
  add('GET', '/', {
    querystring: object({
      q: { type: 'string', minLength: 2 },
      limit: { type: 'integer', minimum: 1, maximum: 100, default: 20 },
      colours: { type: 'array', items: colour },
      since: day,
      within: { type: 'string', format: 'duration' },
      is_new: { type: 'boolean' },
      least: { type: 'number', exclusiveMinimum: 0 },
    }, [], { additionalProperties: false }),
  })
  add('POST', '/', { operationId: 'addBook', summary: 'Adds a book', body: { $ref: 'Book#' } })
  add('GET', '/:id', {
    params: id,
    headers: object({ 'x-trace': uuid, 'if-none-match': { type: 'string', pattern: '^"[a-z]+"$' } }),
  })
  add('PUT', '/:id', { params: id, body: { $ref: 'Book#' } })
  add('PATCH', '/:id', {
    params: id,
    body: object({ title: text, tags: { type: 'array', items: text, nullable: true } }),
  })
  add('DELETE', '/:id', { params: id, response: { 204: { type: 'null' } } }, async (_, reply) => reply.code(204).send())
}, { prefix: '/books' })

add('GET', '/shelves/:room/:shelf/*', {
  params: object({ room: { type: 'integer' }, shelf: colour, '*': text }, ['room', 'shelf', '*']),
})
add(['GET', 'POST'], '/echo/:word', { params: object({ word: text }, ['word']) })
add('POST', '/payments', { body: payment })
add('POST', '/payments/batch', { body: { type: 'array', items: payment, minItems: 1 } })
add('POST', '/scores', { body: { type: 'object', additionalProperties: { type: 'number' } } })
add('POST', '/contact', {
  consumes: ['application/x-www-form-urlencoded'],
  body: object({
    email: { type: 'string', format: 'email' },
    topics: { type: 'array', items: colour },
    age: { type: 'integer' },
  }, ['email']),
})
app.post('/covers', {
  schema: {
    consumes: ['multipart/form-data'],
    body: object({ cover: file, note: text, copies: { type: 'integer' } }, ['cover']),
  },
  // The parser has objects for parts; the schema, as documents need it, the values of those that are no files.
  preValidation: async (request) => {
    for (const [name, part] of Object.entries(request.body)) if (part.type === 'field') request.body[name] = part.value
  },
}, async ({ body }) => ({ ...body, cover: body.cover.filename }))
add('POST', '/notes', { consumes: ['text/plain'], body: { type: 'string' } })
add('GET', '/preferences', {
  // This framework documents cookies, but does not check them.
  cookies: object({ zone: { type: 'string', enum: zones } }),
}, async ({ cookies }, reply) => reply.code([...zones, undefined].includes(cookies.zone) ? 200 : 400).send(cookies))
const only = (name) => async ({ headers, cookies }, reply) =>
  reply.code(headers[name] ?? cookies[name] ? 200 : 401).send({})
add('GET', '/me', { security: [{ token: [] }] }, only('authorization'))
add('GET', '/keys', { security: [{ key: [] }] }, only('x-api-key'))
add('GET', '/session', { security: [{ session: [] }] }, only('session'))
app.get('/openapi.json', { schema: { hide: true } }, async () => app.swagger())

console.log(await app.listen({ host: '127.0.0.1', port: Number(process.argv[2]) }))
