// Requests to providers. The platform adds the credential before it sends them.

import * as host from "toolhost:toolkit/http@1.0.0";

import { decode, encode } from "./bytes.js";
import { context } from "./context.js";
import { ToolError } from "./error.js";
import { refusal } from "./failure.js";
import { File } from "./file.js";

/** Percent-encodes everything but unreserved characters, so that a value can never end a segment, a pair or the path. */
export function escaped(value) {
  const code = (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`;
  return encodeURIComponent(String(value).toWellFormed()).replace(/[!'()*]/g, code);
}

/** Settings of all requests to one provider. `{field}` in the base is a field of the account. */
export function client(base, { headers = {}, errors } = {}) {
  const request = (method) => (path) => new Request(method, base + path, { ...headers }, errors);
  return {
    get: request("GET"),
    head: request("HEAD"),
    post: request("POST"),
    put: request("PUT"),
    patch: request("PATCH"),
    delete: request("DELETE"),
  };
}

/** Requests to whole addresses. */
export const http = client("");

/** Sends several at once, at most six of them in flight, and answers in their order; a failed one is its error. */
export function sendAll(requests) {
  const ready = requests.map((request) => request.finished());
  return host.sendAll(ready).map((answer, index) => {
    if (answer.tag === "err") return transport(answer.val);
    try {
      return new Response(answer.val).checked(requests[index].errors);
    } catch (error) {
      return error;
    }
  });
}

/** One request. Each method changes it and answers it, so that calls are written one after the other. */
export class Request {
  constructor(method, url, headers, errors) {
    this.url = url;
    this.errors = errors;
    this.pairs = [];
    this.headers = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), String(value)]);
    this.rest = { method, body: { tag: "empty" }, credential: "", timeoutMs: 0, intoBlob: false };
  }

  /** Fills `{name}` in the address with one segment. */
  path(name, value) {
    const segment = String(value);
    if (["", ".", ".."].includes(segment)) throw ToolError.invalidInput(`\`${name}\` cannot be \`${segment}\``);
    return this.#fill(name, escaped(segment));
  }

  /** Fills `{name}` in the address with several segments. */
  pathSegments(name, value) {
    const segments = String(value).split("/").filter(Boolean);
    if (segments.some((segment) => segment === "." || segment === "..")) {
      throw ToolError.invalidInput(`\`${name}\` cannot be the path \`${value}\``);
    }
    return this.#fill(name, segments.map(escaped).join("/"));
  }

  /** Adds a query parameter, one for each value of an array, none for null and undefined. */
  query(name, value) {
    for (const one of [value].flat()) {
      if (one !== null && one !== undefined) this.pairs.push([name, one]);
    }
    return this;
  }

  /** Adds one query parameter with all values, joined; nothing when there are none. */
  queryList(name, values, separator = ",") {
    return values.length === 0 ? this : this.query(name, values.join(separator));
  }

  /** Adds a header, unless the value is null or undefined. */
  header(name, value) {
    if (value !== null && value !== undefined) this.headers.push([name.toLowerCase(), String(value)]);
    return this;
  }

  json(value) {
    return this.body(encode(JSON.stringify(value)), "application/json");
  }

  /** Sends an `application/x-www-form-urlencoded` form: an object, or pairs. */
  form(fields) {
    const pairs = Array.isArray(fields) ? fields : Object.entries(fields);
    return this.body(encode(joined(pairs)), "application/x-www-form-urlencoded");
  }

  /** Sends a form with parts: `{ name, text }`, `{ name, file }` or `{ name, bytes, filename, mediaType }`. */
  multipart(parts) {
    const part = ({ name, text, file, bytes, filename, mediaType }) => ({
      name,
      filename: filename ?? file?.name ?? null,
      mediaType: mediaType ?? file?.mimetype ?? null,
      content: file ? { tag: "blob", val: file.id } : { tag: "bytes", val: bytes ?? encode(text) },
    });
    this.rest.body = { tag: "multipart", val: parts.map(part) };
    return this;
  }

  /** Sends a file, whose bytes do not pass through the toolkit. */
  bodyFile(file) {
    this.rest.body = { tag: "content", val: { tag: "blob", val: file.id } };
    return this.header("content-type", file.mimetype);
  }

  /** Sends bytes or a text. At most 4 MiB; larger ones go by `bodyFile`. */
  body(content, mediaType) {
    const bytes = typeof content === "string" ? encode(content) : content;
    this.rest.body = { tag: "content", val: { tag: "bytes", val: bytes } };
    return this.header("content-type", mediaType);
  }

  /** Sends no credential. */
  anonymous() {
    this.rest.credential = "none";
    return this;
  }

  /** Allows the whole exchange this many milliseconds; otherwise it is 30 s. */
  timeout(ms) {
    this.rest.timeoutMs = ms;
    return this;
  }

  /** Puts the body of the answer into a file. Needed past 10 MiB. */
  intoFile() {
    this.rest.intoBlob = true;
    return this;
  }

  /** Sends the request and waits for the answer; a status that is not a success is thrown as an error. */
  send() {
    return this.sendAny().checked(this.errors);
  }

  /** Like `send`, but hands over the answer whatever its status. */
  sendAny() {
    const request = this.finished();
    try {
      return new Response(host.send(request));
    } catch (refused) {
      throw transport(refused.payload ?? refused);
    }
  }

  #fill(name, value) {
    if (!this.url.includes(`{${name}}`)) throw ToolError.internal(`the address \`${this.url}\` has no \`{${name}}\``);
    this.url = this.url.replaceAll(`{${name}}`, () => value);
    return this;
  }

  finished() {
    let url = this.url.replace(/\{([^{}]*)\}/g, (_, name) => {
      const value = context.field(name);
      if (value === undefined) {
        throw ToolError.internal(`the address \`${this.url}\` needs \`${name}\`; fill it with \`.path(…)\`, or declare it as a field of the account`);
      }
      return escaped(value);
    });
    if (this.pairs.length > 0) url += (url.includes("?") ? "&" : "?") + joined(this.pairs);
    return { ...this.rest, url, headers: this.headers };
  }
}

/** Response of a provider. */
export class Response {
  constructor({ status, headers, body, blob }) {
    this.status = status;
    this.headers = headers;
    this.bytes = body instanceof Uint8Array ? body : Uint8Array.from(body);
    this.blob = blob;
  }

  get ok() {
    return this.status >= 200 && this.status < 300;
  }

  /** The first header of this name, in any case. */
  header(name) {
    return this.headers.find(([header]) => header === name.toLowerCase())?.[1];
  }

  text() {
    return decode(this.bytes);
  }

  json() {
    try {
      return JSON.parse(this.text());
    } catch (error) {
      const message = `the provider's response is not JSON: ${error.message}`;
      throw ToolError.upstream(message, { upstreamStatus: this.status });
    }
  }

  /** The file of a request that asked for one with `intoFile`. */
  file() {
    if (this.blob == null) throw ToolError.internal("the answer is in memory; ask for a file with `intoFile()`");
    return File.existing(this.blob);
  }

  checked(errors) {
    const error = errors?.(this) || (this.ok ? null : refusal(this));
    if (error) throw error;
    return this;
  }
}

function joined(pairs) {
  return pairs.map(([name, value]) => `${escaped(name)}=${escaped(value)}`).join("&");
}

function transport({ kind, message }) {
  switch (kind) {
    case "denied":
      return ToolError.denied(message);
    case "credential":
      return ToolError.unauthorized(message);
    case "dns":
    case "connect":
    case "tls":
    case "timeout":
    case "protocol":
      return ToolError.unavailable(message);
    case "too_large":
      return ToolError.upstream(message);
    default:
      return ToolError.internal(message);
  }
}
