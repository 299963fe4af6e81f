//! Connections, request bodies, addresses and name look-ups.
