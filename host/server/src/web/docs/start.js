const dark = matchMedia("(prefers-color-scheme: dark)");
const follow = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
dark.addEventListener("change", follow);
follow();

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
});
