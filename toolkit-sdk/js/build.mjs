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

const BASE64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/** Decodes the numbers of one segment of a source map. */
function numbers(segment) {
  const found = [];
  let bits = 0;
  let shift = 0;
  for (const digit of [...segment].map((letter) => BASE64.indexOf(letter))) {
    bits |= (digit & 31) << shift;
    shift += 5;
    if (digit & 32) continue;
    found.push(bits & 1 ? -(bits >> 1) : bits >> 1);
    bits = shift = 0;
  }
  return found;
}

/** Lists the author's lines in a source map: `LINE:COLUMN FILE:LINE`, the place in the bundle first. */
function authorLines({ sources, mappings }) {
  const isAuthors = sources.map((source) => !/^(\.\.|<|.*node_modules|\.toolkit)/.test(source));
  const lines = [];
  let source = 0;
  let line = 0;
  for (const [index, segments] of mappings.split(";").entries()) {
    let column = 0;
    let last;
    for (const segment of segments.split(",").filter(Boolean)) {
      const [columns, sourceSteps = 0, lineSteps = 0] = numbers(segment);
      column += columns;
      source += sourceSteps;
      line += lineSteps;
      const place = `${sources[source]}:${line + 1}`;
      if (isAuthors[source] && place !== last) lines.push(`${index + 1}:${column} ${place}`);
      last = place;
    }
  }
  return lines.join("\n");
}

/** The engine's message about an error while the toolkit is loaded, with the author's files and lines. */
function located(message, lines) {
  const author = (line, column) => {
    const places = [...lines.matchAll(new RegExp(`^${line}:(\\d+) (.*)$`, "gm"))];
    return places.findLast(([, from]) => Number(from) < Number(column))?.[2];
  };
  return message
    .replace(/^.*Failed to finish JavaScript module evaluation: /, "")
    .replace(/componentize-qjs:user\.js:(\d+):(\d+)/g, (place, line, column) => author(line, column) ?? place)
    .replace(/^ +at .*componentize-qjs:.*\n/gm, "")
    .trimEnd();
}

let lines = "";
try {
  const bundle = await build({
    stdin: { contents: `import "toolkit-sdk/platform.js";\n${main}`, resolveDir: dirname(entry) },
    bundle: true,
    write: false,
    // Not written; sources are named by their paths from here.
    outfile: join(dirname(entry), "bundle.js"),
    sourcemap: "external",
    sourcesContent: false,
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
  const textOf = (end) => bundle.outputFiles.find(({ path }) => path.endsWith(end)).text;
  lines = authorLines(JSON.parse(textOf(".map")));
  const { component } = await componentize({
    witPath: join(here, "wit"),
    world: "toolkit",
    // Traces are translated when they are written, by the library.
    jsSource: `${textOf(".js")}\nglobalThis[Symbol.for("toolhost.lines")] = ${JSON.stringify(lines)};`,
    sync: true,
  });
  writeFileSync(output, component);
} catch (error) {
  const early = /unknown import: `toolhost:toolkit\/([a-z]+)@[^#]*#([a-z-]+)`/.exec(error.message);
  if (early) {
    console.error(`the toolkit uses the platform (${early[1]}.${early[2]}) while it is loaded; it is there only during a call`);
  } else if (!error.errors) {
    // What the bundler found it has told already.
    console.error(located(error.message, lines));
  }
  process.exit(1);
}
