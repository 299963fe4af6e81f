// The library of JavaScript toolkits.

export { clock, context, log, random, state } from "./context.js";
export { apiKey, basic, bearerToken, flow, noAuth, oauth1, oauth2, poll, secret, text, tool, toolkit, webhook } from "./declare.js";
export { ToolError } from "./error.js";
export { downloadable, File, uploaded } from "./file.js";
export { client, http, sendAll } from "./http.js";
export { polled, received } from "./trigger.js";
