document.documentElement.classList.toggle("dark-mode", matchMedia("(prefers-color-scheme: dark)").matches);

// Without `validatorUrl: null`, the page would send the description to the validator of a third party.
SwaggerUIBundle({
  url: "/api/v3/openapi.json",
  dom_id: "#swagger-ui",
  deepLinking: true,
  docExpansion: "list",
  validatorUrl: null,
});
