// Runs a certified identity provider on loopback: `node provider.mjs FOLDER ISSUER`. FOLDER contains
// its packages, ISSUER is its issuer identifier. Prints its address. `GET /end/TOKEN` expires an
// access token.
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [folder, issuer] = process.argv.slice(2);
const library = createRequire(`${folder}/`).resolve("oidc-provider");
const { default: Provider } = await import(pathToFileURL(library));

const provider = new Provider(issuer, {
  features: {
    registration: { enabled: true },
    registrationManagement: { enabled: true },
    revocation: { enabled: true },
    // The provider's built-in pages, which accept any name and password.
    devInteractions: { enabled: true },
  },
  pkce: { required: () => true },
  rotateRefreshToken: () => true,
  scopes: ["openid", "offline_access"],
  ttl: { AccessToken: 3600, AuthorizationCode: 60, Grant: 86400, IdToken: 3600, Interaction: 600, RefreshToken: 86400, Session: 86400 },
  cookies: { keys: ["of a test"] },
});
// The server under test uses https addresses, which its settings redirect to this process.
provider.proxy = true;
const answer = provider.callback();
const { host } = new URL(issuer);
const server = createServer(async (request, response) => {
  // Expires an access token at the request of a test.
  if (request.url.startsWith("/end/")) {
    const token = await provider.AccessToken.find(request.url.slice("/end/".length));
    await token.destroy();
    return response.end();
  }
  Object.assign(request.headers, { host, "x-forwarded-proto": "https" });
  answer(request, response);
});
server.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${server.address().port}`));
