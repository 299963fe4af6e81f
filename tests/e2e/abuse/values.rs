//! Arguments, schemas, logos and components that cost more than they show.
