//! Speed and memory, side by side with a bare HTTP handler.

fn main() {}
