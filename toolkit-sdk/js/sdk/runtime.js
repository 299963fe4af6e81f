// What the component exports: the author's functions behind the platform's contract.

import { trace } from "./platform.js";

import * as z from "zod";

import { decode, encode } from "./bytes.js";
import { begin, log } from "./context.js";
import { described } from "./declare.js";
import { ToolError } from "./error.js";
import { Inbound } from "./trigger.js";

/** The functions of the contract. The declaration stays in memory, where `toolkit build` finds it in the compiled toolkit. */
export function start(toolkit) {
  if (toolkit?.slug === undefined) throw new TypeError("the entry file exports `toolkit({ slug: … })` as its default");
  globalThis[Symbol.for("toolhost.declaration")] = declaration(toolkit);
  const find = (all, slug, what) => {
    const key = slug.slice(toolkit.slug.length + 1).toLowerCase();
    const found = Object.entries(all ?? {}).find(([name]) => name.toLowerCase() === key)?.[1];
    if (!found) throw ToolError.notFound(`this toolkit has no ${what} \`${slug}\``);
    return found;
  };
  return {
    execute: (slug, json, context) =>
      answered(context, () => {
        const { input, run } = find(toolkit.tools, slug, "tool");
        return encode(JSON.stringify(settled(run(read(input, json, "arguments"))) ?? {}));
      }),
    poll: (slug, json, cursor, context) =>
      answered(context, () => {
        const { config, run } = find(toolkit.triggers, slug, "trigger");
        return settled(run(read(config, json, "configuration"), cursor.length ? JSON.parse(decode(Uint8Array.from(cursor))) : undefined));
      }),
    receive: (slug, json, request, context) =>
      answered(context, () => {
        const { config, run } = find(toolkit.triggers, slug, "trigger");
        return settled(run(read(config, json, "configuration"), new Inbound(request)));
      }),
  };
}

/** Bytes, because a text may lie in memory in pieces; ASCII, because it is looked for there. */
function declaration(toolkit) {
  const code = (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
  const json = JSON.stringify(described(toolkit)).replace(/[\u007f-\uffff]/g, code);
  return encode(["toolhost", "declaration", String(json.length).padStart(8, "0"), json].join(":"));
}

function read(schema, json, what) {
  const value = JSON.parse(decode(Uint8Array.from(json)));
  if (!(schema instanceof z.ZodType)) return value;
  const { success, data, error } = schema.safeParse(value);
  if (!success) throw ToolError.invalidInput(`the ${what} do not fit: ${z.prettifyError(error)}`);
  return data;
}

function settled(value) {
  if (typeof value?.then === "function") throw new TypeError("`run` returned a promise; write a synchronous function");
  return value;
}

function answered(context, work) {
  begin(context);
  try {
    return work();
  } catch (thrown) {
    // Out of memory: nothing more can be done here, and the host knows why the engine stops.
    if (thrown?.message === "out of memory") throw thrown;
    throw failure(thrown);
  }
}

function failure(thrown) {
  if (!(thrown instanceof ToolError)) {
    log.error(thrown instanceof Error ? trace(thrown) : String(thrown));
    thrown = ToolError.internal(String(thrown));
  }
  const { kind, message, retryAfterMs, upstreamStatus, details } = thrown;
  return {
    kind,
    message,
    retryAfterMs: retryAfterMs ?? null,
    upstreamStatus: upstreamStatus ?? null,
    details: details === undefined ? null : encode(JSON.stringify(details)),
  };
}
