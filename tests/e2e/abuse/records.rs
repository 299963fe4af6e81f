//! Many writers of one record, and records that are deleted while others use them.
