//! Amounts that one project may store, and what is written about its runs.
