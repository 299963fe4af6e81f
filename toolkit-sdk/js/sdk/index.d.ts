import type * as z from "zod";

type Schema = z.ZodType | Record<string, unknown>;
type Read<S> = S extends z.ZodType ? z.output<S> : any;
type Answered<S> = S extends z.ZodType ? z.input<S> : any;
type Query = string | number | boolean | bigint | null | undefined;

/** Declares the toolkit; the entry file exports what this answers as its default. */
export function toolkit(declaration: {
  /** `a-z`, `0-9`, `_`; unique on a server. */
  slug: string;
  name: string;
  description: string;
  categories?: string[];
  /** `YYYYMMDD_NN`; without it `toolkit build` stamps the day. */
  version?: string;
  /** An `.svg` or `.png` in the toolkit's folder. */
  logo?: string;
  auth?: Scheme[];
  /** `[METHODS ]HOST[:PORT][/PATH]` */
  egress?: string[];
  limits?: { memoryMib?: number; cpuMs?: number; wallMs?: number };
  tools?: Record<string, Tool>;
  triggers?: Record<string, Trigger>;
}): unknown;

export interface Tool {
  readonly tool: unique symbol;
}

export interface Trigger {
  readonly trigger: unique symbol;
}

export interface Scheme {
  mode: string;
}

export interface Field {
  name: string;
}

/** Declares a tool. Its key in `tools` is the part of its slug after the toolkit's. */
export function tool<I extends Schema, O extends Schema>(declaration: {
  name?: string;
  /** What the agent reads to choose this tool. */
  description: string;
  input?: I;
  output?: O;
  run: (input: Read<I>) => Answered<O>;
  /** Changes nothing outside; enforced. */
  readOnly?: boolean;
  /** May delete or overwrite. */
  destructive?: boolean;
  /** Twice is the same as once. */
  idempotent?: boolean;
  /** Reaches an open set of things, such as the web. */
  openWorld?: boolean;
  /** Among the few shown first. */
  important?: boolean;
  /** Runs without an account. */
  noAuth?: boolean;
  tags?: string[];
  /** Other words for what the tool does, by which a search finds it. */
  synonyms?: string[];
  scopes?: string[];
  /** Narrows the toolkit's hosts. */
  egress?: string[];
  /** Arguments that work. */
  examples?: (I extends z.ZodType ? z.input<I> : unknown)[];
}): Tool;

interface TriggerWords<C extends Schema, P extends Schema> {
  name?: string;
  description: string;
  config?: C;
  payload?: P;
  scopes?: string[];
  egress?: string[];
}

/** Declares a trigger that asks for news. `cursor` is undefined the first time: answer nothing old. */
export function poll<C extends Schema, P extends Schema>(
  declaration: TriggerWords<C, P> & { run: (config: Read<C>, cursor: any) => Polled },
): Trigger;

/** Declares a trigger for the provider's webhooks. */
export function webhook<C extends Schema, P extends Schema>(
  declaration: TriggerWords<C, P> & { run: (config: Read<C>, request: Inbound) => Received },
): Trigger;

export interface Polled {
  readonly polled: unique symbol;
}

export interface Received {
  readonly received: unique symbol;
}

export function polled(cursor: unknown, events?: [id: string | number, payload: unknown][], more?: boolean): Polled;
export function received(
  events?: [id: string | number, payload: unknown][],
  answer?: { status?: number; text?: string; json?: unknown },
): Received;

export interface Inbound {
  method: string;
  path: string;
  headers: [string, string][];
  /** The exact bytes, so that a signature over them can be verified. */
  bytes: Uint8Array;
  header(name: string): string | undefined;
  text(): string;
  json(): any;
}

interface SchemeWords {
  name?: string;
  title?: string;
  help?: string;
  header?: string;
  query?: string;
  value?: string;
  fields?: Field[];
  request?: (
    | { in: "header" | "query"; name: string; value: string }
    | { in: "basic"; username: string; password: string }
    | { in: "path"; marker: string; value: string }
  )[];
  baseUrl?: string;
  verify?: string;
  /** How each request is signed, as a manifest says it. */
  sign?: { with: "oauth1" | "aws_sigv4" | "template"; [word: string]: unknown };
  /** Names of the fields with what connections show: a certificate and its key, both PEM. */
  clientCertificate?: { certificate: string; key: string };
}

export function apiKey(options: SchemeWords): Scheme;
export function bearerToken(options?: SchemeWords): Scheme;
export function basic(options?: SchemeWords): Scheme;
export function noAuth(): Scheme;
interface FlowWords {
  authorize_url?: string;
  token_url: string;
  scopes?: string[];
  scope_separator?: string;
  authorize_params?: Record<string, string>;
  pkce?: boolean;
  client_auth?: "body" | "basic" | "secret_as_user" | "private_key_jwt" | "none";
  token_answer?: "json" | "form";
  /** The rest of what a manifest says about a flow. */
  [word: string]: unknown;
}

export function oauth2(options: SchemeWords & { flow: FlowWords & { authorize_url: string } }): Scheme;
export function oauth1(
  options: SchemeWords & {
    flow: { request_url: string; authorize_url: string; token_url: string; [word: string]: unknown };
  },
): Scheme;
/** Another mode in which the provider issues a token, for example `s2s_oauth2`. */
export function flow(mode: string, options: SchemeWords & { flow: FlowWords }): Scheme;

interface FieldWords {
  title?: string;
  help?: string;
  default?: string;
  pattern?: string;
  optional?: boolean;
  format?: "hostname" | "uri" | "uuid" | "email";
  /** The only values. */
  oneOf?: string[];
  /** Stand around the value and are no part of it. */
  prefix?: string;
  suffix?: string;
  /** The flow fills it. */
  hidden?: boolean;
}

export function secret(name: string, options?: FieldWords): Field;
export function text(name: string, options?: FieldWords): Field;

interface More {
  retryAfterMs?: number;
  upstreamStatus?: number;
  details?: unknown;
}

/** An answer that says why the work could not be done. */
export class ToolError extends Error {
  constructor(kind: string, message: string, more?: More);
  kind: string;
  retryAfterMs?: number;
  upstreamStatus?: number;
  details?: unknown;
  static invalidInput(message: string, more?: More): ToolError;
  static unauthorized(message: string, more?: More): ToolError;
  static forbidden(message: string, more?: More): ToolError;
  static notFound(message: string, more?: More): ToolError;
  static conflict(message: string, more?: More): ToolError;
  static rateLimited(message: string, more?: More): ToolError;
  static upstream(message: string, more?: More): ToolError;
  static unavailable(message: string, more?: More): ToolError;
  static denied(message: string, more?: More): ToolError;
  static internal(message: string, more?: More): ToolError;
}

type Errors = (response: Response) => ToolError | null | undefined | false;
type Method = "get" | "head" | "post" | "put" | "patch" | "delete";
type Client = Record<Method, (path: string) => Request>;

/** Settings of all requests to one provider. `{field}` in the base is a field of the account. */
export function client(base: string, options?: { headers?: Record<string, string>; errors?: Errors }): Client;
/** Requests to whole addresses. */
export const http: Client;
/** Sends several at once, at most six of them in flight, and answers in their order; a failed one is its error. */
export function sendAll(requests: Request[]): (Response | ToolError)[];

/** One request. Each method changes it and answers it. */
export interface Request {
  /** Fills `{name}` in the address with one segment. */
  path(name: string, value: string | number | bigint): Request;
  /** Fills `{name}` in the address with several segments. */
  pathSegments(name: string, value: string): Request;
  /** Adds a query parameter, one for each value of an array, none for null and undefined. */
  query(name: string, value: Query | Query[]): Request;
  /** Adds one query parameter with all values, joined. */
  queryList(name: string, values: (string | number)[], separator?: string): Request;
  header(name: string, value: Query): Request;
  json(value: unknown): Request;
  form(fields: Record<string, Query> | [string, Query][]): Request;
  multipart(
    parts: { name: string; text?: string; file?: File; bytes?: Uint8Array; filename?: string; mediaType?: string }[],
  ): Request;
  bodyFile(file: File): Request;
  body(content: Uint8Array | string, mediaType: string): Request;
  /** Sends no credential. */
  anonymous(): Request;
  timeout(ms: number): Request;
  /** Puts the body of the answer into a file. */
  intoFile(): Request;
  /** Sends the request; a status that is not a success is thrown as an error. */
  send(): Response;
  /** Hands over the answer whatever its status. */
  sendAny(): Response;
}

/** Response of a provider. */
export interface Response {
  status: number;
  headers: [string, string][];
  bytes: Uint8Array;
  ok: boolean;
  header(name: string): string | undefined;
  text(): string;
  json(): any;
  file(): File;
}

/** A file, by handle: its bytes enter the toolkit only when asked for. */
export class File {
  static create(name: string, mimetype: string, bytes?: Uint8Array): File;
  name: string;
  mimetype: string;
  id: string;
  size(): number;
  readAt(offset: number, length: number): Uint8Array;
  read(limit: number): Uint8Array;
  readText(limit: number): string;
  append(bytes: Uint8Array): void;
}

/** The schema of a file that the caller uploads. */
export function uploaded(): z.ZodType<File, { name: string; mimetype: string; s3key: string }>;
/** The schema of a file that the caller may download. */
export function downloadable(): z.ZodType<unknown, File>;

export const context: {
  /** A non-secret field of the connected account. */
  field(name: string): string | undefined;
  runId(): string;
  userId(): string;
  remainingMs(): number;
};

export const log: Record<"debug" | "info" | "warn" | "error", (message: unknown) => void>;

export const clock: {
  /** Milliseconds since 1970. */
  now(): number;
  sleep(ms: number): void;
};

export const random: {
  bytes(length: number): Uint8Array;
  uuid(): string;
};

/** For a trigger from call to call, for a tool to the end of the call. Values are JSON. */
export const state: {
  get(key: string): any;
  /** False when it is over the limits: nothing was stored. */
  set(key: string, value: unknown): boolean;
  remove(key: string): void;
};

declare global {
  const console: Record<"log" | "info" | "debug" | "trace" | "warn" | "error", (...values: unknown[]) => void>;
  const crypto: { getRandomValues<T extends ArrayBufferView>(view: T): T; randomUUID(): string };
  const performance: { now(): number };
  class TextEncoder {
    encode(text?: string): Uint8Array;
  }
  class TextDecoder {
    constructor(label?: string, options?: { fatal?: boolean });
    decode(bytes?: ArrayBuffer | ArrayBufferView): string;
  }
}
