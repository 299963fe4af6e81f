//! Error numbers that a program sees.

/// Error number of WASI preview 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Errno(pub(super) u16);

impl Errno {
    pub(super) const BADF: Self = Self(8);
    pub(super) const BUSY: Self = Self(10);
    pub(super) const EXIST: Self = Self(20);
    pub(super) const FAULT: Self = Self(21);
    pub(super) const FBIG: Self = Self(22);
    pub(super) const ILSEQ: Self = Self(25);
    pub(super) const INVAL: Self = Self(28);
    pub(super) const IO: Self = Self(29);
    pub(super) const ISDIR: Self = Self(31);
    pub(super) const MFILE: Self = Self(33);
    pub(super) const NAMETOOLONG: Self = Self(37);
    pub(super) const NOENT: Self = Self(44);
    pub(super) const NOMEM: Self = Self(48);
    pub(super) const NOSPC: Self = Self(51);
    pub(super) const NOTDIR: Self = Self(54);
    pub(super) const NOTEMPTY: Self = Self(55);
    pub(super) const NOTSUP: Self = Self(58);
    pub(super) const ROFS: Self = Self(69);
    pub(super) const SPIPE: Self = Self(70);
}
