import { client, tool, ToolError, toolkit } from "toolkit-sdk";
import * as z from "zod";

const api = client("https://api.example.com/v1");

export default toolkit({
  slug: "{{slug}}",
  name: "{{title}}",
  description: "Says hello, and reads items of an example.",
  logo: "logo.svg",
  egress: ["api.example.com"],
  tools: {
    greet: tool({
      description: "Greets a person by name.",
      readOnly: true,
      input: z.object({ name: z.string().describe("Name of the person to greet.") }),
      output: z.object({ text: z.string() }),
      examples: [{ name: "Ada" }],
      run({ name }) {
        if (name.trim() === "") throw ToolError.invalidInput("`name` is empty: give the name of a person");
        return { text: `Hello, ${name}!` };
      },
    }),

    get_item: tool({
      description: "Reads one item by its number.",
      readOnly: true,
      input: z.object({ id: z.int().min(1).describe("Number of the item, for example 7.") }),
      output: z.object({ name: z.string() }),
      run: ({ id }) => api.get("/items/{id}").path("id", id).send().json(),
    }),
  },
});
