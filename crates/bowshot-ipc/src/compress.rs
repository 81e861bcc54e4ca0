//! Compression of message bodies: which codec, and what Arrow calls it.

use arrow_ipc::CompressionType;

/// Compression of record batch bodies (Arrow IPC `BodyCompression`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Compression {
    /// None: buffers are sent as they lie in memory, which is the only way without a copy.
    #[default]
    None,
    /// LZ4 frames.
    Lz4,
    /// Zstandard.
    Zstd,
}

impl Compression {
    pub(crate) fn arrow(self) -> Option<CompressionType> {
        match self {
            Self::None => None,
            Self::Lz4 => Some(CompressionType::LZ4_FRAME),
            Self::Zstd => Some(CompressionType::ZSTD),
        }
    }
}

impl From<bowshot_api::Compression> for Compression {
    fn from(compression: bowshot_api::Compression) -> Self {
        match compression {
            bowshot_api::Compression::None => Self::None,
            bowshot_api::Compression::Lz4 => Self::Lz4,
            bowshot_api::Compression::Zstd => Self::Zstd,
        }
    }
}
