// Compiles one JavaScript toolkit: bundles it with its library and makes a component of the bundle. Run by `toolkit build`
// next to the packages it needs, with one argument, a JSON object.

import { writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

import { componentize } from "componentize-qjs";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const { entry, library, output } = JSON.parse(process.argv[2]);

const main = `import toolkit from ${JSON.stringify(entry)};
import { start } from "toolkit-sdk/runtime.js";
export const entry = start(toolkit);`;

try {
  const bundle = await build({
    stdin: { contents: `import "toolkit-sdk/platform.js";\n${main}`, resolveDir: dirname(entry) },
    bundle: true,
    write: false,
    format: "esm",
    platform: "neutral",
    target: "es2023",
    // Of packages that come for several platforms, the one that expects least.
    mainFields: ["browser", "module", "main"],
    conditions: ["browser", "module", "import"],
    external: ["toolhost:*"],
    alias: { "toolkit-sdk": library },
    nodePaths: [join(here, "node_modules")],
    charset: "utf8",
    logLevel: "warning",
    color: process.stderr.isTTY,
  });
  const { component } = await componentize({
    witPath: join(here, "wit"),
    world: "toolkit",
    jsSource: bundle.outputFiles[0].text,
    sync: true,
  });
  writeFileSync(output, component);
} catch (error) {
  const early = /unknown import: `toolhost:toolkit\/([a-z]+)@[^#]*#([a-z-]+)`/.exec(error.message);
  if (early) {
    console.error(`the toolkit uses the platform (${early[1]}.${early[2]}) while it is loaded; it is there only during a call`);
  } else if (!error.errors) {
    // What the bundler found it has told already.
    console.error(error.message);
  }
  process.exit(1);
}
