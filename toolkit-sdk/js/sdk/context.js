// What the platform tells a call about itself, and its small services.

import * as time from "toolhost:toolkit/clock@1.0.0";
import * as memory from "toolhost:toolkit/state@1.0.0";

import { decode, encode } from "./bytes.js";
import { bytes, print, uuid } from "./platform.js";

let current = { runId: "", userId: "", fields: [], remainingMs: 0 };

export function begin(context) {
  current = context;
}

/** What the platform tells a call about itself. Never a secret. */
export const context = {
  /** A non-secret field of the connected account, for example `subdomain`. */
  field: (name) => current.fields.find(([field]) => field === name)?.[1],
  runId: () => current.runId,
  userId: () => current.userId,
  /** Milliseconds that this call may still take. */
  remainingMs: () => Math.max(0, Number(current.remainingMs) - Number(time.elapsed())),
};

/** Lines for the execution log; `console` writes there, too. */
export const log = Object.fromEntries(
  ["debug", "info", "warn", "error"].map((level) => [level, (message) => print(level, String(message))]),
);

export const clock = {
  /** Milliseconds since 1970. */
  now: () => Number(time.now()),
  /** Waits; wakes early when the call's time is over. */
  sleep: (ms) => time.sleep(ms),
};

export const random = { bytes, uuid };

/** A small memory: for a trigger from call to call, for a tool to the end of the call. Values are JSON. */
export const state = {
  get(key) {
    const value = memory.get(key);
    return value == null ? undefined : JSON.parse(decode(Uint8Array.from(value)));
  },
  /** False when it is over the limits: nothing was stored. */
  set: (key, value) => memory.set(key, encode(JSON.stringify(value))),
  remove: (key) => memory.remove(key),
};
