//! The JSON of an object, as it is or compressed.

use std::sync::Arc;

use bytes::Bytes;
use lz4_flex::block::{compress_prepend_size_with_dict, decompress_size_prepended_with_dict};

/// The JSON of an object.
#[derive(Clone)]
pub(crate) enum Body {
    Plain(Bytes),
    Packed(Packed),
}

impl Body {
    /// The JSON.
    pub(super) fn bytes(&self) -> Bytes {
        match self {
            Self::Plain(bytes) => bytes.clone(),
            Self::Packed(packed) => packed.unpack(),
        }
    }

    /// How many bytes it takes, a dictionary aside.
    pub(super) fn kept(&self) -> usize {
        match self {
            Self::Plain(bytes) => bytes.len(),
            Self::Packed(packed) => packed.len(),
        }
    }

    /// How many bytes the JSON has.
    pub(super) fn length(&self) -> usize {
        match self {
            Self::Plain(bytes) => bytes.len(),
            Self::Packed(packed) => packed.length(),
        }
    }
}

/// JSON compressed with a dictionary that many objects share.
#[derive(Clone)]
pub(crate) struct Packed {
    bytes: Box<[u8]>,
    dictionary: Arc<Vec<u8>>,
}

impl Packed {
    pub(crate) fn new(plain: &[u8], dictionary: Arc<Vec<u8>>) -> Self {
        let bytes = compress_prepend_size_with_dict(plain, &dictionary).into_boxed_slice();
        Self { bytes, dictionary }
    }

    /// How many bytes it takes, the dictionary aside.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// How many bytes it was made of: they are counted in front.
    fn length(&self) -> usize {
        self.bytes.first_chunk().map_or(0, |length| u32::from_le_bytes(*length) as usize)
    }

    /// What it was compressed with.
    pub(crate) fn dictionary(&self) -> Arc<Vec<u8>> {
        self.dictionary.clone()
    }

    fn unpack(&self) -> Bytes {
        // The bytes were packed with this very dictionary, so this cannot fail.
        decompress_size_prepended_with_dict(&self.bytes, &self.dictionary).unwrap_or_default().into()
    }
}
