//! ORC files: `bowshot-orc` reads them, of bytes that are the content that was looked at.

use crate::batches::{Batches, Request};
use crate::data_file::DataFile;
use crate::file_metadata::{Detail, FileFacts};
use bowshot_object_store::Error;
use bowshot_orc::{OrcFile, Source, Wanted};
use bytes::Bytes;
use std::io;
use std::ops::Range;
use std::sync::Arc;

pub(crate) fn facts(file: &Arc<DataFile>) -> Result<FileFacts, Error> {
    let orc = OrcFile::open(&source(file)).map_err(|error| explain(file, error))?;
    let rows =
        usize::try_from(orc.rows()).map_err(|_| Error::corrupt(file.path(), "it has too many rows"))?;
    let columns = Arc::clone(orc.columns());
    Ok(FileFacts { columns, rows: Some(rows), detail: Detail::Orc(Arc::new(orc)) })
}

/// The rows of the stripes that begin in the wanted range: each stripe belongs to exactly one range.
pub(crate) fn open(file: &Arc<DataFile>, orc: &Arc<OrcFile>, request: &Request) -> Result<Batches, Error> {
    let wanted = Wanted {
        columns: request.positions_in(orc.columns()),
        batch_rows: request.batch_size,
        range: request.range.clone(),
    };
    let batches = bowshot_orc::Batches::new(orc, source(file), wanted);
    let batches = batches.map_err(|error| explain(file, error))?;
    let file = Arc::clone(file);
    Ok(Batches::new(batches.map(move |batch| batch.map_err(|error| explain(&file, error)))))
}

fn source(file: &Arc<DataFile>) -> Arc<dyn Source> {
    Arc::new(Looked(Arc::clone(file)))
}

/// A file that was looked at: each of its reads checks that it still is the same.
struct Looked(Arc<DataFile>);

impl Source for Looked {
    fn size(&self) -> u64 {
        self.0.size()
    }

    fn read(&self, range: Range<u64>) -> io::Result<Bytes> {
        self.0.read(range).map_err(io::Error::from)
    }
}

fn explain(file: &DataFile, error: bowshot_orc::Error) -> Error {
    match error {
        bowshot_orc::Error::Unsupported(detail) => {
            Error::Unsupported { path: file.path().to_path_buf(), detail }
        }
        // The file keeps what has stopped its reads.
        bowshot_orc::Error::Io(error) => {
            file.fault().cloned().unwrap_or_else(|| Error::io(file.path(), error))
        }
        bowshot_orc::Error::Corrupt(detail) => Error::corrupt(file.path(), detail),
    }
}
