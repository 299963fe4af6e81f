// Files, by handle: their bytes enter the toolkit only when asked for.

import * as blob from "toolhost:toolkit/blob@1.0.0";
import * as z from "zod";

import { decode } from "./bytes.js";
import { ToolError } from "./error.js";

const CHUNK = 1 << 20;

/** A file that the caller uploaded, that a response was put into, or that this call makes. */
export class File {
  constructor({ name, mimetype, s3key }) {
    this.name = name;
    this.mimetype = mimetype;
    this.id = s3key;
  }

  /** A new file with these bytes, or an empty one. It outlives the call only as a part of the answer. */
  static create(name, mimetype, bytes) {
    const file = new File({ name, mimetype, s3key: asked(() => blob.create(name, mimetype)) });
    if (bytes) file.append(bytes);
    return file;
  }

  static existing(id) {
    const info = asked(() => blob.stat(id));
    return new File({ name: info.name, mimetype: info.mediaType, s3key: info.id });
  }

  size() {
    return Number(asked(() => blob.stat(this.id)).size);
  }

  /** At most `length` bytes, and at most 1 MiB, from `offset`; shorter, or empty, at the end. */
  readAt(offset, length) {
    return Uint8Array.from(asked(() => blob.read(this.id, offset, length)));
  }

  /** All bytes, unless there are more than `limit`. */
  read(limit) {
    const size = this.size();
    if (size > limit) {
      throw ToolError.invalidInput(`the file \`${this.name}\` has ${size} bytes; at most ${limit} can be read`);
    }
    const all = new Uint8Array(size);
    for (let at = 0; at < size; ) {
      const part = this.readAt(at, CHUNK);
      if (part.length === 0) return all.subarray(0, at);
      all.set(part, at);
      at += part.length;
    }
    return all;
  }

  /** The whole file as text, unless it has more than `limit` bytes. */
  readText(limit) {
    return decode(this.read(limit));
  }

  /** Adds to the end of a file made in this call. */
  append(bytes) {
    for (let at = 0; at < bytes.length; at += CHUNK) asked(() => blob.append(this.id, bytes.subarray(at, at + CHUNK)));
  }

  toJSON() {
    return { name: this.name, mimetype: this.mimetype, s3url: this.id };
  }
}

const parts = {
  name: z.string().describe("Name of the file."),
  mimetype: z.string().describe("Media type of the file."),
};
const place = z.string().describe("Where the file is.");

/** The schema of a file that the caller uploads; the tool gets a `File`. */
export const uploaded = () =>
  z.object({ ...parts, s3key: place }).meta({ file_uploadable: true }).transform((file) => new File(file));

/** The schema of a file that the caller may download; the tool answers a `File`. */
export const downloadable = () => z.object({ ...parts, s3url: place }).meta({ file_downloadable: true });

function asked(question) {
  try {
    return question();
  } catch (refused) {
    const { kind, message } = refused.payload ?? refused;
    if (kind === "not_found") throw ToolError.notFound(message);
    if (kind === "too_large") throw ToolError.invalidInput(message);
    if (kind === "limit") throw new ToolError("limit", message);
    throw ToolError.internal(message);
  }
}
