// Text to bytes and back. The engine has no TextEncoder of its own; its URI functions know UTF-8 and are native.

const CHUNK = 8192;

/** The UTF-8 of a text. */
export function encode(text) {
  const latin = unescape(encodeURIComponent(String(text).toWellFormed()));
  const bytes = new Uint8Array(latin.length);
  for (let index = 0; index < latin.length; index++) bytes[index] = latin.charCodeAt(index);
  return bytes;
}

/** The text of UTF-8; what is none becomes U+FFFD, or an error when `fatal`. */
export function decode(bytes, fatal = false) {
  let latin = "";
  for (let start = 0; start < bytes.length; start += CHUNK) {
    latin += String.fromCharCode.apply(null, bytes.subarray(start, start + CHUNK));
  }
  try {
    return decodeURIComponent(escape(latin));
  } catch {
    if (fatal) throw new TypeError("the bytes are not UTF-8");
    return latin.replace(/[\x00-\x7f]+|[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}|[^]/g, (part) => {
      try {
        return decodeURIComponent(escape(part));
      } catch {
        return "\ufffd";
      }
    });
  }
}
