//! Every promise of the API, asked over HTTP.
