//! The shape of the house, checked as a test.
