// What a toolkit says about itself. The declaration is checked for misspelt words here; what it means is read by
// `toolkit build`, which makes the manifest of it.

import * as z from "zod";

const TOOLKIT = ["slug", "name", "description", "categories", "version", "logo", "auth", "egress", "limits", "tools", "triggers"];
const TOOL = [
  "name",
  "description",
  "input",
  "output",
  "run",
  "readOnly",
  "destructive",
  "idempotent",
  "openWorld",
  "important",
  "noAuth",
  "tags",
  "synonyms",
  "scopes",
  "egress",
  "examples",
];
const TRIGGER = ["name", "description", "config", "payload", "run", "scopes", "egress"];
const SCHEME = ["name", "title", "help", "header", "query", "value", "fields", "request", "baseUrl", "verify", "sign", "clientCertificate", "flow"];
const FIELD = ["title", "help", "default", "pattern", "optional", "format", "oneOf", "prefix", "suffix", "hidden"];

/** Declares the toolkit; the entry file exports what this answers as its default. */
export const toolkit = (declaration) => known(declaration, TOOLKIT, "the toolkit");

/** Declares a tool. */
export const tool = (declaration) => plainFunction(known(declaration, TOOL, "a tool"), "a tool");

/** Declares a trigger that asks for news: `run(config, cursor)` answers `polled(…)`. */
export const poll = (declaration) => ({ kind: "poll", ...trigger(declaration) });

/** Declares a trigger for the provider's webhooks: `run(config, request)` returns `received(…)`. */
export const webhook = (declaration) => ({ kind: "webhook", ...trigger(declaration) });

const trigger = (declaration) => plainFunction(known(declaration, TRIGGER, "a trigger"), "a trigger");

const scheme = (mode) => (options = {}) => {
  const { baseUrl: base_url, clientCertificate: client_certificate, flow, ...rest } = known(options, SCHEME, "an auth scheme");
  return { mode, base_url, client_certificate, [mode === "oauth1" ? "oauth1" : "oauth2"]: flow, ...rest };
};

/** Ways to connect an account. */
export const apiKey = scheme("api_key");
export const bearerToken = scheme("bearer_token");
export const basic = scheme("basic");
export const noAuth = scheme("no_auth");
/** A flow in the browser; `flow` has `authorize_url`, `token_url` and the rest of what a manifest says about one. */
export const oauth2 = scheme("oauth2");
/** The same with OAuth 1.0, where `flow` has `request_url`, too. */
export const oauth1 = scheme("oauth1");
/** Another mode in which the provider issues a token, for example `s2s_oauth2`. */
export const flow = (mode, options) => scheme(mode)(options);

/** Fields of a scheme. Only text fields ever reach the toolkit. */
export const secret = (name, options = {}) => field(name, true, options);
export const text = (name, options = {}) => field(name, false, options);

const field = (name, secret, options) => {
  const { oneOf: one_of, ...rest } = known(options, FIELD, "a field");
  return { name, secret, one_of, ...rest };
};

function known(object, words, what) {
  for (const word of Object.keys(object)) {
    if (!words.includes(word)) throw new TypeError(`\`${word}\` is unknown to ${what}; known are ${words.join(", ")}`);
  }
  return object;
}

function plainFunction(declaration, what) {
  if (typeof declaration.run !== "function") throw new TypeError(`${what} has a function \`run\``);
  if (declaration.run.constructor.name !== "Function") {
    throw new TypeError("`run` is a synchronous function: remove `async`; requests block until the response arrives");
  }
  return declaration;
}

/** The declaration as `toolkit build` reads it. */
export function described(toolkit) {
  const { limits = {}, tools = {}, triggers = {}, ...rest } = toolkit;
  return {
    ...rest,
    limits: { memory_mib: limits.memoryMib, cpu_ms: limits.cpuMs, wall_ms: limits.wallMs },
    tools: Object.entries(tools).map(([key, { run, input, output, readOnly, openWorld, noAuth, ...tool }]) => ({
      ...tool,
      key,
      input: schema(input ?? z.object({}), "input"),
      output: schema(output ?? z.looseObject({}), "output"),
      read_only: readOnly,
      open_world: openWorld,
      no_auth: noAuth,
    })),
    triggers: Object.entries(triggers).map(([key, { run, config, payload, ...trigger }]) => ({
      ...trigger,
      key,
      config: schema(config ?? z.object({}), "input"),
      payload: schema(payload ?? z.looseObject({}), "output"),
    })),
  };
}

/** A zod schema, or JSON Schema as it is. */
function schema(schema, io) {
  if (!(schema instanceof z.ZodType)) return schema;
  const { $schema, ...plain } = z.toJSONSchema(schema, { target: "draft-7", io, override: ({ jsonSchema }) => simplify(jsonSchema, io) });
  return plain;
}

/** Leaves out what zod adds and the author did not say. */
function simplify(schema, io) {
  if (schema.minimum === Number.MIN_SAFE_INTEGER) delete schema.minimum;
  if (schema.maximum === Number.MAX_SAFE_INTEGER) delete schema.maximum;
  if (io === "output" && schema.additionalProperties === false) delete schema.additionalProperties;
  if (schema.additionalProperties && Object.keys(schema.additionalProperties).length === 0) delete schema.additionalProperties;
}
