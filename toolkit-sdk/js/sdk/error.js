// Why a tool could not do its work.

const KINDS = {
  invalidInput: "invalid_input",
  unauthorized: "unauthorized",
  forbidden: "forbidden",
  notFound: "not_found",
  conflict: "conflict",
  rateLimited: "rate_limited",
  upstream: "upstream_error",
  unavailable: "upstream_unavailable",
  denied: "denied",
  internal: "internal",
};

/** An answer that says why the work could not be done: a kind for programs, a sentence for people and agents. */
export class ToolError extends Error {
  name = "ToolError";

  constructor(kind, message, { retryAfterMs, upstreamStatus, details } = {}) {
    super(message);
    this.kind = kind;
    this.retryAfterMs = retryAfterMs;
    this.upstreamStatus = upstreamStatus;
    this.details = details;
  }
}

// `ToolError.notFound("there is no item 7")`, and one for each kind.
for (const [name, kind] of Object.entries(KINDS)) {
  ToolError[name] = (message, more) => new ToolError(kind, message, more);
}
