//! Randomness from the operating system.

use crate::host;

/// Returns random bytes, at most 64 KiB per call.
#[must_use]
pub fn bytes(length: u32) -> Vec<u8> {
    host::random(length)
}

/// Returns a random number.
#[must_use]
pub fn number() -> u64 {
    bytes(8)
        .iter()
        .fold(0, |number, &byte| number << 8 | u64::from(byte))
}

/// Returns a random identifier in the form of a version 4 UUID, for example for idempotency keys.
#[must_use]
pub fn uuid() -> String {
    let mut bytes = bytes(16);
    bytes.resize(16, 0);
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let mut text = String::with_capacity(36);
    for (index, byte) in bytes.iter().enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        for digit in [byte >> 4, byte & 15] {
            text.push(char::from_digit(u32::from(digit), 16).unwrap_or('0'));
        }
    }
    text
}
