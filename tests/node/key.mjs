// Adds the key of a project to the requests of a program that cannot be told to send one:
// `node --import key.mjs PROGRAM`, with the key in TEST_KEY.
import { channel } from "node:diagnostics_channel";

channel("undici:request:create").subscribe(({ request }) => request.addHeader("x-api-key", process.env.TEST_KEY));
