// Verifies webhooks with the JavaScript library of Standard Webhooks: `node webhooks.mjs FOLDER FILE`.
// FOLDER contains the library. FILE contains the secret and the messages as JSON. Each message is
// verified as of the time of its attempt. Prints the number of valid messages.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const [folder, file] = process.argv.slice(2);
const { Webhook } = createRequire(`${folder}/`)("standardwebhooks");
const { secret, messages } = JSON.parse(readFileSync(file, "utf8"));
const webhook = new Webhook(secret, { format: "raw" });
for (const { headers, body } of messages) {
  Date.now = () => headers["webhook-timestamp"] * 1000;
  webhook.verify(body, headers);
  let refused = false;
  try {
    webhook.verify(`${body} `, headers);
  } catch {
    refused = true;
  }
  if (!refused) throw new Error(`a changed body is valid: ${headers["webhook-id"]}`);
}
console.log(messages.length);
