// Operates a page with the keyboard alone: `node browser.mjs FOLDER CHROMIUM URL PICTURES`. FOLDER
// contains the packages. Each line of standard input is a command: `type TEXT`, `press KEY`,
// `send KEY` for a key that navigates to another page, `open URL`, `width PIXELS`, `colors light` or
// `colors dark`, `picture NAME`, `audit` for the violations that axe-core finds. After each command the
// script prints the state of the page as one line of JSON.
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const [folder, executablePath, url, pictures] = process.argv.slice(2);
const library = createRequire(`${folder}/`).resolve("playwright-core");
const { default: playwright } = await import(pathToFileURL(library));
const browser = await playwright.chromium.launch({ executablePath, args: ["--no-sandbox"] });
const page = await browser.newPage({ viewport: { width: 600, height: 700 } });
const audit = readFileSync(createRequire(`${folder}/`).resolve("axe-core/axe.min.js"), "utf8");
const problems = [];
let violations = [];
page.on("console", (message) => problems.push(message.text()));
page.on("pageerror", (error) => problems.push(String(error)));

const tell = async () => {
  const seen = await page.evaluate(() => {
    const focused = document.activeElement;
    const outline = focused ? getComputedStyle(focused).outlineStyle : "none";
    const text = (element) => element.innerText.trim();
    const described = (focused?.getAttribute("aria-describedby") ?? "").split(" ");
    return {
      title: document.querySelector("h1") ? text(document.querySelector("h1")) : "",
      focused: focused?.name || focused?.localName,
      label: focused?.labels?.[0] ? text(focused.labels[0]) : "",
      description: described.map((id) => document.getElementById(id)).filter(Boolean).map(text).join(" ").trim(),
      outline,
      alert: document.querySelector("[role=alert]") ? text(document.querySelector("[role=alert]")) : "",
      background: [document.body, document.documentElement].map((element) => getComputedStyle(element).backgroundColor).join(),
      images: [...document.images].filter((image) => image.naturalWidth > 0).length,
      wide: document.documentElement.scrollWidth > window.innerWidth,
    };
  });
  console.log(JSON.stringify({ ...seen, url: page.url(), problems, violations }));
};

await page.goto(url);
await tell();
for await (const line of createInterface({ input: process.stdin })) {
  const [what, ...rest] = line.split(" ");
  const argument = rest.join(" ");
  if (what === "type") await page.keyboard.insertText(argument);
  if (what === "press") await page.keyboard.press(argument);
  if (what === "send") await Promise.all([page.waitForEvent("framenavigated"), page.keyboard.press(argument)]);
  if (what === "open") await page.goto(argument);
  if (what === "width") await page.setViewportSize({ width: Number(argument), height: 700 });
  if (what === "colors") await page.emulateMedia({ colorScheme: argument });
  if (what === "picture") await page.screenshot({ path: `${pictures}/${argument}.png` });
  await page.waitForLoadState("load");
  if (what === "audit") {
    await page.waitForLoadState("networkidle");
    // Scripts of the browser's debugger are outside the policy of the page.
    await page.evaluate(audit);
    const found = await page.evaluate(() => axe.run());
    const nodes = (violation) => violation.nodes.slice(0, 5).map((node) => node.target.join(" "));
    violations = found.violations.map((violation) => `${violation.id}: ${nodes(violation).join(", ")}`);
  }
  await tell();
}
await browser.close();
