// Uses the API as an application does, with the newest client library for JavaScript: `client.mjs FOLDER OPTIONS`.
// FOLDER has the packages, and OPTIONS are those of client.py. Prints a report as JSON.

import { createRequire } from "node:module";
import { join } from "node:path";

const require = createRequire(join(process.argv[2], "package.json"));
const { Composio } = require("@composio/core");
const { Composio: Client } = require("@composio/client");

const options = JSON.parse(process.argv[3]);
const { tool, trigger: slug } = options;
const client = new Composio({ apiKey: options.key, baseURL: options.url, allowTracking: false, disableVersionCheck: true });

// The client of the library below asks for approval.
const api = new Client({ apiKey: options.key, baseURL: options.url });

async function answered(session, decision) {
  const call = { tool_slug: tool, arguments: options.arguments };
  const asked = await api.toolRouter.session.execute(session, call);
  const [name] = Object.keys(asked.input_requests);
  const answer = { [name]: { action: "accept", content: { decision } } };
  const repeated = { ...call, input_responses: answer, request_state: asked.request_state };
  return (await api.toolRouter.session.execute(session, repeated)).result_type;
}

const account = await client.connectedAccounts.initiate("amy", options.auth_config, {
  config: options.state,
  allowMultiple: true,
});
const trigger = await client.triggers.create("amy", slug, {
  connectedAccountId: account.id,
  triggerConfig: options.config,
});
const listed = await client.triggers.listActive({ triggerIds: [trigger.triggerId] });
await client.triggers.disable(trigger.triggerId);
await client.triggers.enable(trigger.triggerId);
await client.triggers.delete(trigger.triggerId);
const session = await client.create("amy");
const found = await session.search({ query: options.use_case });
const ran = await session.execute(tool, options.arguments);
const asking = (
  await api.toolRouter.session.create({ user_id: "amy", toolkits: { require_approval: [options.asked_toolkit] } })
).session_id;
const link = await session.authorize(options.toolkit);
console.log(
  JSON.stringify({
    account: (await client.connectedAccounts.get(account.id)).status,
    triggers: listed.items.length,
    link: link.redirectUrl,
    found: found.results[0].primaryToolSlugs,
    ran: ran.data,
    approved: await answered(asking, "approve"),
    denied: await answered(asking, "deny"),
  }),
);
