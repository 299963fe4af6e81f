// Uses an MCP endpoint as an assistant does, with the official JavaScript library:
// `node assistant.mjs FOLDER OPTIONS`. FOLDER contains the library. OPTIONS is JSON: the `url`, the `key` of
// the project if one is sent, the `mode` in which the client agrees on the version of the protocol (`legacy`
// or `auto`), the `calls` to make, true as `opens_urls` if the user opens every address that the server asks for,
// the `answer` of the user to every form, and the call to `cancel` when a line arrives on standard input.
// Prints a report as JSON.
import { once } from "node:events";
import { createRequire } from "node:module";

const [folder, given] = process.argv.slice(2);
const options = JSON.parse(given);
const library = createRequire(`${folder}/`)("@modelcontextprotocol/client");
const { Client, StreamableHTTPClientTransport } = library;

const headers = options.key ? { "x-api-key": options.key } : {};
const transport = new StreamableHTTPClientTransport(new URL(options.url), { requestInit: { headers } });
const modes = { ...(options.opens_urls && { url: {} }), ...(options.answer && { form: {} }) };
const asks = Object.keys(modes).length > 0;
const capabilities = asks ? { elicitation: modes } : {};
const negotiation = { mode: options.mode };
const client = new Client({ name: "test", version: "1" }, { capabilities, versionNegotiation: negotiation });
const asked = [];
if (asks) {
  client.setRequestHandler("elicitation/create", ({ params }) => {
    asked.push(params);
    const action = options.answer ?? "accept";
    const asksDecision = action === "accept" && params.requestedSchema?.properties?.decision;
    return asksDecision ? { action, content: { decision: "approve" } } : { action };
  });
}
await client.connect(transport);
const { tools } = await client.listTools();
const report = { version: client.getNegotiatedProtocolVersion(), tools, calls: [], asked };

for (const { name, arguments: given, progress: wanted } of options.calls) {
  const progress = [];
  const onprogress = wanted ? (notification) => progress.push(notification.progress) : undefined;
  let result;
  try {
    result = await client.callTool({ name, arguments: given }, { onprogress });
  } catch (cause) {
    report.calls.push({ code: cause.code, asked: cause.elicitations });
    continue;
  }
  report.calls.push({
    structured: result.structuredContent ?? null,
    text: result.content[0].text,
    is_error: result.isError ?? false,
    progress,
  });
}

if (options.cancel) {
  const { name, arguments: given } = options.cancel;
  const abort = new AbortController();
  once(process.stdin, "data").then(() => abort.abort());
  const call = client.callTool({ name, arguments: given }, { signal: abort.signal });
  report.cancelled = await call.then(
    () => "it ended",
    (cause) => (abort.signal.aborted ? "cancelled" : String(cause)),
  );
  process.stdin.destroy();
}
await client.close();
console.log(JSON.stringify(report));
