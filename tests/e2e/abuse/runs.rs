//! Memory and secrets of one run, and runs whose caller is gone.
