const dark = matchMedia("(prefers-color-scheme: dark)");
const follow = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
dark.addEventListener("change", follow);
follow();

// The button that opens an operation contains the operation's path. A link in a button cannot be used with
// a screen reader, so the path is text; the address in the browser still follows the open operation.
const PathsAreText = {
  wrapComponents: {
    DeepLink: (Original, { React }) => (properties) =>
      properties.path.includes("/")
        ? React.createElement("span", { className: "nostyle" }, properties.text)
        : React.createElement(Original, properties),
  },
};

// Attributes for screen readers that Swagger UI leaves out: names of fields and tables, levels of headings that
// skip one, and the keyboard's access to examples that scroll.
const MISSING_ATTRIBUTES = [
  ["#servers", () => ({ "aria-label": "Server" })],
  ["tr[data-param-name] :is(select, input, textarea)", (field) => ({ "aria-label": field.closest("tr").dataset.paramName })],
  [".content-type, .content-type-wrapper select", () => ({ "aria-label": "Media type" })],
  ["table[role=region]", (table) => ({ "aria-label": table.id.replaceAll("_", " ") })],
  ["h3.opblock-tag", () => ({ role: "heading", "aria-level": "2" })],
  ["section.models > h4", () => ({ role: "heading", "aria-level": "2" })],
  [".opblock h4", () => ({ role: "heading", "aria-level": "3" })],
  [".opblock h5", () => ({ role: "heading", "aria-level": "4" })],
  ["pre.microlight", () => ({ tabindex: "0" })],
];
const complete = () => {
  for (const [selector, attributes] of MISSING_ATTRIBUTES) {
    for (const element of document.querySelectorAll(selector)) {
      for (const [name, value] of Object.entries(attributes(element))) {
        if (element.getAttribute(name) !== value) element.setAttribute(name, value);
      }
    }
  }
};
// The page has thousands of elements and changes in many steps: they are completed once for each frame.
let isScheduled = false;
const schedule = () => {
  if (isScheduled) return;
  isScheduled = true;
  requestAnimationFrame(() => {
    isScheduled = false;
    complete();
  });
};
new MutationObserver(schedule).observe(document.querySelector("#swagger-ui"), { childList: true, subtree: true });

// Without `validatorUrl: null`, the page would send the description to the validator of a third party.
// The list of schemas is closed: it is longer than the operations, which show their own.
SwaggerUIBundle({
  // Below the path of the page, which a proxy may have put before it.
  url: "api/v3.1/openapi.json",
  dom_id: "#swagger-ui",
  deepLinking: true,
  docExpansion: "list",
  defaultModelsExpandDepth: 0,
  validatorUrl: null,
  plugins: [PathsAreText],
});
