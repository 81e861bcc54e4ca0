//! A file on its way into an object store: in parts while it is made, visible once the last of them is confirmed, and taken back
//! if it does not get there. A small one goes in one piece. Everything here blocks.

use super::client::{Client, Content, Counts};
use super::fault::Fault;
use super::io::Task;
use bowshot_api::{Error, ErrorKind, Reason, Result};
use object_store::path::Path as Location;
use object_store::{MultipartUpload, PutMode, PutMultipartOptions, PutOptions, PutPayload};
use std::collections::VecDeque;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

/// Bytes of a part. Stores take ten thousand of them.
const PART_BYTES: usize = 16 << 20;
const MAX_PARTS: usize = 10_000;
/// Parts that are on their way at once.
const PARALLEL_PARTS: usize = 4;

pub struct Upload {
    client: Arc<Client>,
    location: Location,
    /// As the statement names it.
    shown: String,
    overwrite: bool,
    buffer: Vec<u8>,
    upload: Option<Box<dyn MultipartUpload>>,
    parts: VecDeque<Task<std::result::Result<(), Fault>>>,
    begun: usize,
    sent: u64,
    /// The entity tag of what was there before.
    before: Option<String>,
}

bowshot_api::debug_fields!(Upload { shown, begun });

impl Upload {
    /// # Errors
    /// `AlreadyExists` without `overwrite` where something is; `Unavailable` when the store cannot be asked.
    pub(super) fn begin(
        client: Arc<Client>,
        location: Location,
        shown: &str,
        overwrite: bool,
    ) -> Result<Self> {
        let mut upload = Self {
            client,
            location,
            shown: shown.to_owned(),
            overwrite,
            buffer: Vec::new(),
            upload: None,
            parts: VecDeque::new(),
            begun: 0,
            sent: 0,
            before: None,
        };
        upload.before = upload.check_free()?;
        Ok(upload)
    }

    /// Gives the file its name, unless something is against that by then.
    pub fn finish(mut self, check: impl FnOnce() -> Result<()>) -> Result<()> {
        let bytes = std::mem::take(&mut self.buffer);
        if self.upload.is_none() {
            check()?;
            let size = bytes.len() as u64;
            let put = self.put(bytes).or_else(|fault| self.confirmed(size, fault));
            return put.map_err(|fault| self.explained(&fault));
        }
        self.send(bytes).and_then(|()| self.drain(0)).map_err(|fault| self.explained(&fault))?;
        // The name is taken by the last request; whoever takes it between these two is overwritten.
        self.check_free()?;
        check()?;
        let size = self.sent;
        let completed = self.complete().or_else(|fault| self.confirmed(size, fault));
        completed.map_err(|fault| self.explained(&fault))
    }

    /// Fails where something is that must not be overwritten; gives the entity tag of what is there.
    fn check_free(&self) -> Result<Option<String>> {
        match self.there() {
            Ok(_) if !self.overwrite => Err(self.explained(&Fault::Exists)),
            Ok(there) => Ok(there.tag),
            Err(Fault::Missing) => Ok(None),
            Err(fault) => Err(self.explained(&fault)),
        }
    }

    fn there(&self) -> std::result::Result<Content, Fault> {
        let (client, location) = (Arc::clone(&self.client), self.location.clone());
        let there = self.client.shared.io.wait(async move { client.head(&location).await })?;
        there.map(|meta| Content::of(&meta))
    }

    /// A last request whose answer was lost may have gone through: then what is there now is this file.
    fn confirmed(&mut self, size: u64, fault: Fault) -> std::result::Result<(), Fault> {
        if !fault.may_pass() && fault != Fault::Missing {
            return Err(fault);
        }
        match self.there() {
            Ok(there) if there.size == size && there.tag.is_some() && there.tag != self.before => {
                self.upload = None;
                Ok(())
            }
            _ => Err(fault),
        }
    }

    /// One piece, with the condition that nothing is there.
    fn put(&self, bytes: Vec<u8>) -> std::result::Result<(), Fault> {
        let (client, location) = (Arc::clone(&self.client), self.location.clone());
        let mode = if self.overwrite { PutMode::Overwrite } else { PutMode::Create };
        Counts::add(&client.counts.bytes_written, bytes.len());
        self.client.shared.io.wait(async move {
            let options = PutOptions { mode, ..PutOptions::default() };
            let put = async {
                let way = client.way(&location)?;
                let put = way.stores.patient.put_opts(&location, PutPayload::from(bytes), options).await;
                put.map(drop).map_err(|error| way.fault(&error))
            };
            client.counted(put).await
        })?
    }

    /// Sends a part, while no more than a few others are on their way.
    fn send(&mut self, bytes: Vec<u8>) -> std::result::Result<(), Fault> {
        if bytes.is_empty() {
            return Ok(());
        }
        if self.begun >= MAX_PARTS {
            return Err(Fault::Strange("a file has at most 160 GB"));
        }
        let mut upload = match self.upload.take() {
            Some(upload) => upload,
            None => self.start()?,
        };
        let length = bytes.len();
        Counts::add(&self.client.counts.bytes_written, length);
        let part = upload.put_part(PutPayload::from(bytes));
        self.upload = Some(upload);
        self.begun += 1;
        self.sent += length as u64;
        let client = Arc::clone(&self.client);
        let sent =
            async move { client.counted(async { part.await.map_err(|error| Fault::of(&error)) }).await };
        self.parts.push_back(self.client.shared.io.spawn(sent));
        self.drain(PARALLEL_PARTS - 1)
    }

    fn start(&self) -> std::result::Result<Box<dyn MultipartUpload>, Fault> {
        let (client, location) = (Arc::clone(&self.client), self.location.clone());
        self.client.shared.io.wait(async move {
            let begun = async {
                let options = PutMultipartOptions::default();
                let way = client.way(&location)?;
                let begun = way.stores.patient.put_multipart_opts(&location, options).await;
                begun.map_err(|error| way.fault(&error))
            };
            client.counted(begun).await
        })?
    }

    /// Waits until at most `most` parts are on their way.
    fn drain(&mut self, most: usize) -> std::result::Result<(), Fault> {
        while self.parts.len() > most {
            if let Some(part) = self.parts.pop_front() {
                self.client.shared.io.wait(async move { part.done().await })???;
            }
        }
        Ok(())
    }

    fn complete(&mut self) -> std::result::Result<(), Fault> {
        let Some(mut upload) = self.upload.take() else { return Err(Fault::Stopped) };
        let client = Arc::clone(&self.client);
        let (upload, done) = self.client.shared.io.wait(async move {
            let done = client
                .counted(async { upload.complete().await.map(drop).map_err(|error| Fault::of(&error)) })
                .await;
            (upload, done)
        })?;
        if done.is_err() {
            // Taken back when this is dropped.
            self.upload = Some(upload);
        }
        done
    }

    fn explained(&self, fault: &Fault) -> Error {
        let shown = &self.shown;
        match fault {
            Fault::Exists => Error::new(ErrorKind::AlreadyExists, format!("file `{shown}` already exists"))
                .with_reason(Reason::DuplicateFile)
                .with_hint("choose another name, or write `WITH (OVERWRITE true)`"),
            Fault::Missing => Error::new(
                ErrorKind::Unavailable,
                format!("`{shown}` cannot be written: the bucket does not exist"),
            ),
            other => Error::new(ErrorKind::Unavailable, format!("`{shown}` cannot be written: {other}"))
                .with_hint("the file was not created; run the statement again when the store answers"),
        }
    }
}

impl Write for Upload {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= PART_BYTES {
            let part = std::mem::replace(&mut self.buffer, Vec::with_capacity(PART_BYTES));
            self.send(part).map_err(|fault| io::Error::other(fault.to_string()))?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Upload {
    /// Takes back what was sent, before whoever waits hears that there is no file.
    fn drop(&mut self) {
        self.parts.clear();
        let Some(mut upload) = self.upload.take() else { return };
        let client = Arc::clone(&self.client);
        let taken_back = self.client.shared.io.wait(async move {
            client.counted(async { upload.abort().await.map_err(|error| Fault::of(&error)) }).await
        });
        if let Err(fault) = taken_back.and_then(|done| done) {
            tracing::warn!(path = %Path::new(&self.shown).display(), reason = %fault, "cannot remove the parts of an aborted upload from its bucket");
        }
    }
}
