// What triggers take and answer.

import { decode, encode } from "./bytes.js";
import { ToolError } from "./error.js";

/** What a poll found: the cursor of the next poll, and events as `[id, payload]`. */
export function polled(cursor, events = [], more = false) {
  return { events: events.map(event), cursor: encode(JSON.stringify(cursor)), more };
}

/** What a webhook brought, and what to answer: `{ status, text, json }`. */
export function received(events = [], { status = 200, text = "", json } = {}) {
  const body = json === undefined ? text : JSON.stringify(json);
  const mediaType = json === undefined ? "text/plain" : "application/json";
  return { events: events.map(event), status, mediaType, body: encode(body) };
}

const event = ([id, payload]) => ({ id: String(id), payload: encode(JSON.stringify(payload)) });

/** A webhook request as the provider sent it. */
export class Inbound {
  constructor({ method, path, headers, body }) {
    this.method = method;
    this.path = path;
    this.headers = headers;
    this.bytes = Uint8Array.from(body);
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
      throw ToolError.invalidInput(`the webhook's body is not JSON: ${error.message}`);
    }
  }
}
