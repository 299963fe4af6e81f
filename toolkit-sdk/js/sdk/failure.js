// Converts a provider's error response to a tool error: the kind from the status, the message from the places where providers
// put it, the waiting time from the headers.

import { clock } from "./context.js";
import { ToolError } from "./error.js";

const PLACES = [
  "error.message",
  "message",
  "error_description",
  "errors.0.message",
  "errors.0.detail",
  "errors.0.title",
  "detail",
  "error.detail",
  "errorMessages.0",
  "error_message",
  "errors.0",
  "error",
  "reason",
  "title",
  "msg",
  "description",
];
const RESETS = ["x-ratelimit-reset-after", "x-ratelimit-reset", "ratelimit-reset", "x-rate-limit-reset"];
const LONGEST_MESSAGE = 500;
const LARGEST_DETAILS = 32 * 1024;
const LONGEST_WAIT = 7 * 24 * 3600 * 1000;

/** The error for an answer that is not a success. */
export function refusal(response) {
  const { status } = response;
  const body = parsed(response);
  const said = sentence(body) ?? plain(response);
  const exhausted = response.header("x-ratelimit-remaining")?.trim() === "0" || response.header("retry-after");
  const kind = status === 403 && exhausted ? "rate_limited" : kindOf(status);
  const waits = kind === "rate_limited" || kind === "upstream_unavailable";
  const message = `the provider responded ${status}` + (said ? `: ${said.slice(0, LONGEST_MESSAGE)}` : "");
  return new ToolError(kind, message, {
    upstreamStatus: status,
    retryAfterMs: waits ? wait(response) : undefined,
    details: response.bytes.length <= LARGEST_DETAILS ? body : undefined,
  });
}

function kindOf(status) {
  if ([400, 413, 414, 422].includes(status)) return "invalid_input";
  if (status === 401) return "unauthorized";
  if ([402, 403].includes(status)) return "forbidden";
  if ([404, 410].includes(status)) return "not_found";
  if ([409, 412, 423].includes(status)) return "conflict";
  if (status === 429) return "rate_limited";
  if ([408, 425, 502, 503, 504, 529].includes(status)) return "upstream_unavailable";
  return "upstream_error";
}

function parsed(response) {
  try {
    return JSON.parse(response.text());
  } catch {
    return undefined;
  }
}

function sentence(body) {
  if (typeof body === "string") return body;
  const at = (place) => place.split(".").reduce((value, key) => value?.[key], body);
  return PLACES.map(at).find((text) => typeof text === "string" && text.trim() !== "");
}

function plain(response) {
  return response.header("content-type")?.startsWith("text/plain") ? response.text().trim() : undefined;
}

/** Milliseconds to wait, as the provider's response states. */
function wait(response) {
  const exact = Number(response.header("retry-after-ms") ?? NaN);
  const hint = ["retry-after", ...RESETS].map((name) => response.header(name)).find(Boolean);
  const ms = Number.isNaN(exact) ? (hint === undefined ? NaN : read(hint.trim())) : exact;
  return ms >= 0 && ms <= LONGEST_WAIT ? Math.round(ms) : undefined;
}

/** Seconds from now, a moment in seconds or milliseconds since 1970, or a date. */
function read(hint) {
  const number = Number(hint);
  if (Number.isNaN(number)) return Math.max(0, Date.parse(hint) - clock.now());
  if (number >= 1e12) return Math.max(0, number - clock.now());
  return number >= 1e9 ? Math.max(0, number * 1000 - clock.now()) : number * 1000;
}
