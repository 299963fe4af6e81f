// What programs expect of a JavaScript engine and this one lacks, on top of the platform's contract. Evaluated before the
// toolkit, and once more in effect at the start of each call: a toolkit is compiled with its memory as it was after loading.

import * as host from "toolhost:toolkit/random@1.0.0";
import * as lines from "toolhost:toolkit/log@1.0.0";

import { decode, encode } from "./bytes.js";

/** Returns the author's file and line of a place in the bundle, as `toolkit build` listed them. */
function written(line, column) {
  const table = String(globalThis[Symbol.for("toolhost.lines")]);
  const places = [...table.matchAll(new RegExp(`^${line}:(\\d+) (.*)$`, "gm"))];
  return places.findLast(([, from]) => Number(from) < Number(column))?.[2];
}

/** The text and the trace of an error, with the author's files and lines. */
export function trace(error) {
  const stack = (error.stack ?? "").trimEnd().split("\n");
  const frames = stack.map((frame) =>
    frame.replace(/componentize-qjs:user\.js:(\d+):(\d+)/, (place, line, column) => written(line, column) ?? place),
  );
  // Frames below the author's are the library's.
  const last = frames.findLastIndex((frame, index) => frame !== stack[index]);
  return [String(error), ...frames.slice(0, last + 1 || undefined)].join("\n").trimEnd();
}

function show(value) {
  if (typeof value === "string") return value;
  if (value instanceof Error) return trace(value);
  try {
    return JSON.stringify(value) ?? String(value);
  } catch {
    return String(value);
  }
}

/** Writes a text to the log, line by line. */
export function print(level, text) {
  for (const line of text.split("\n")) lines.write(level, line);
}

const printer = (level) => (...values) => print(level, values.map(show).join(" "));

globalThis.console = {
  log: printer("info"),
  info: printer("info"),
  debug: printer("debug"),
  trace: printer("debug"),
  warn: printer("warn"),
  error: printer("error"),
};

globalThis.TextEncoder = class TextEncoder {
  encoding = "utf-8";
  encode(text = "") {
    return encode(text);
  }
};

globalThis.TextDecoder = class TextDecoder {
  encoding = "utf-8";
  #fatal;
  constructor(label = "utf-8", { fatal = false } = {}) {
    if (!/^utf-?8$/i.test(label)) throw new RangeError(`only utf-8 is known here, not ${label}`);
    this.#fatal = fatal;
  }
  decode(bytes = new Uint8Array()) {
    const view = ArrayBuffer.isView(bytes)
      ? new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength)
      : new Uint8Array(bytes);
    return decode(view, this.#fatal).replace(/^\ufeff/, "");
  }
};

/** Random bytes from the platform. */
export function bytes(length) {
  const all = new Uint8Array(length);
  for (let at = 0; at < length; ) {
    const part = Uint8Array.from(host.bytes(length - at));
    all.set(part, at);
    at += part.length;
  }
  return all;
}

/** A random UUID, version 4. */
export function uuid() {
  const random = bytes(16);
  random[6] = (random[6] & 0x0f) | 0x40;
  random[8] = (random[8] & 0x3f) | 0x80;
  const hex = [...random].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
}

globalThis.crypto = {
  getRandomValues(view) {
    new Uint8Array(view.buffer, view.byteOffset, view.byteLength).set(bytes(view.byteLength));
    return view;
  },
  randomUUID: uuid,
};

// The engine's own generator would go on from where it stood when the toolkit was compiled, the same in every call.
const float = new DataView(new ArrayBuffer(8));
Math.random = () => {
  bytes(8).forEach((byte, index) => float.setUint8(index, byte));
  return (float.getUint32(0) * 2 ** 21 + (float.getUint32(4) >>> 11)) / 2 ** 53;
};
