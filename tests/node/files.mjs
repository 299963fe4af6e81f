// Sends a file to a tool and takes the file of its result, with an older client library for JavaScript: `files.mjs FOLDER OPTIONS`.
// FOLDER has the packages, and OPTIONS are those of files.py. Prints what the copy has as JSON.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const options = JSON.parse(process.argv[3]);
// The library keeps files below the home folder.
process.env.HOME = options.folder;

const require = createRequire(join(process.argv[2], "package.json"));
const { Composio } = require("composio-core-older");

const client = new Composio({ apiKey: options.key, baseURL: options.url, allowTracking: false, disableVersionCheck: true });
const ran = await client.tools.execute(options.tool, {
  userId: "amy",
  arguments: { file: options.file },
  dangerouslySkipVersionCheck: true,
});
const content = ran.error ? null : readFileSync(ran.data.file.uri, "utf8");
console.log(JSON.stringify({ error: ran.error, content }));
