//! Pages of lists whose items consist of further records, which may be large.
//!
//! Those of a whole page can exceed its memory many times over. They are therefore read for some items
//! at a time, and the page ends once they have more than [`MAX_PAGE_BYTES`].

use std::vec::IntoIter;

use store::{Cursor, Listed, MAX_PAGE_BYTES, Record};

/// A page whose items `V` are made from records, some at a time.
pub(crate) struct LargePage<T, V> {
    records: IntoIter<Record<T>>,
    at_a_time: usize,
    /// Position after all records.
    after_all: Option<Cursor>,
    /// Size of the further records of all items, in bytes.
    bytes: usize,
    made: Listed<V>,
}

impl<T, V> LargePage<T, V> {
    /// Starts a page. Its further records are read for `at_a_time` items at a time.
    pub(crate) fn new(found: Listed<Record<T>>, at_a_time: usize) -> Self {
        Self {
            at_a_time,
            bytes: 0,
            made: Listed {
                items: Vec::with_capacity(found.items.len()),
                total: found.total,
                next: None,
            },
            after_all: found.next,
            records: found.items.into_iter(),
        }
    }

    /// Returns the next records of which items are to be made, or `None` at the end of the page.
    /// `cursor` returns the position of a record in the list.
    pub(crate) fn next_part(
        &mut self,
        cursor: impl Fn(&Record<T>) -> Cursor,
    ) -> Option<Vec<Record<T>>> {
        if self.bytes > MAX_PAGE_BYTES {
            return None;
        }
        let part: Vec<_> = self.records.by_ref().take(self.at_a_time).collect();
        let last = part.last()?;
        self.made.next = match self.records.len() {
            0 => self.after_all.take(),
            _ => Some(cursor(last)),
        };
        Some(part)
    }

    /// Adds the items that were made of a part, and the size of their further records.
    pub(crate) fn add(&mut self, items: Vec<V>, bytes: usize) {
        self.made.items.extend(items);
        self.bytes += bytes;
    }

    pub(crate) fn end(self) -> Listed<V> {
        self.made
    }
}
