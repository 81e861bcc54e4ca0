//! The pipes whose files the server is to load.

use super::Engine;
use crate::pipes::ChosenFiles;
use crate::write::copy::read_options;
use crate::write::pipes::of_format;
use bowshot_api::{Error, ErrorKind, Principal, Result};
use bowshot_tables::Pipe;
use futures::FutureExt;
use futures::future::BoxFuture;
use std::sync::Arc;
use tokio::task::spawn_blocking;
use uuid::Uuid;

/// A pipe whose time has come.
#[derive(Debug)]
pub struct DuePipe {
    name: String,
    pipe: Pipe,
}

impl DuePipe {
    /// Which one it is, whatever its name is.
    pub fn id(&self) -> Uuid {
        self.pipe.id
    }
}

/// A pipe that has files to load, or to note as such that cannot be loaded.
#[derive(Debug)]
pub struct DueLoad {
    id: Uuid,
    name: String,
    owner: Result<Principal>,
    chosen: Arc<ChosenFiles>,
}

impl DueLoad {
    /// Whose rights the load has.
    ///
    /// # Errors
    /// `Denied` where nobody who can log in owns the pipe.
    pub fn owner(&self) -> Result<Principal> {
        match &self.owner {
            Ok(owner) => Ok(owner.clone()),
            Err(error) => Err(error.duplicate()),
        }
    }

    /// The statement that loads them.
    pub fn sql(&self) -> String {
        format!("ALTER PIPE \"{}\" REFRESH", self.name.replace('"', "\"\""))
    }
}

impl Engine {
    /// The pipes whose time has come, without those that are still at work.
    pub fn due_pipes(&self, is_at_work: impl Fn(Uuid) -> bool) -> Vec<DuePipe> {
        let parts = &self.shared.parts;
        let pipes = Pipe::all(parts.tables.snapshot().notes().texts());
        parts.pipes.retain(&pipes);
        let is_due = |pipe: &Pipe| !pipe.paused && !is_at_work(pipe.id) && parts.pipes.begin(pipe);
        let due = pipes.into_iter().filter(|(_, pipe)| is_due(pipe));
        due.map(|(name, pipe)| DuePipe { name, pipe }).collect()
    }

    /// Looks for files of a pipe; `None` if there is nothing to load, or they cannot be found, which `system.pipes` shows.
    pub fn due_load(&self, due: DuePipe) -> BoxFuture<'_, Option<DueLoad>> {
        async move {
            let DuePipe { name, pipe } = due;
            match self.look_for_files(&name, &pipe).await {
                Ok(Some(chosen)) => {
                    return Some(DueLoad { id: pipe.id, owner: self.pipe_owner(&pipe), name, chosen });
                }
                Ok(None) => self.shared.parts.tables.note_refresh(pipe.id, None),
                Err(error) => self.note_pipe(&name, pipe.id, Some(error)),
            }
            None
        }
        .boxed()
    }

    /// Notes how a load has ended, which `system.pipes` and `system.pipe_errors` show.
    pub fn note_load(&self, due: &DueLoad, outcome: Result<()>) {
        let ended = self.shared.parts.pipes.end(due.id, &due.chosen, outcome);
        self.note_pipe(&due.name, due.id, ended.err());
    }

    fn note_pipe(&self, name: &str, id: Uuid, error: Option<Error>) {
        if let Some(error) = &error {
            tracing::warn!(pipe = %name, %error, "a pipe cannot load files");
        }
        self.shared.parts.tables.note_refresh(id, error.map(|error| error.to_string()));
    }

    async fn look_for_files(&self, name: &str, pipe: &Pipe) -> Result<Option<Arc<ChosenFiles>>> {
        let parts = &self.shared.parts;
        let files = parts.files.clone().ok_or_else(|| {
            Error::unsupported("this server serves no files")
                .with_hint("start it with the folder that the pipe reads: `bowshot serve FOLDER`")
        })?;
        let (shape, read) = read_options(&pipe.location, pipe.options.clone())?;
        let (options, location) = (of_format(read, shape), pipe.location.clone());
        let (states, pipe, name) = (Arc::clone(&parts.pipes), pipe.clone(), name.to_owned());
        let snapshot = parts.tables.snapshot();
        let looked = spawn_blocking(move || {
            let found = files.find_files(&location, &options)?;
            states.choose((&name, &pipe), snapshot.notes().texts(), found)
        });
        looked.await.map_err(|error| Error::internal("looking for files broke down").with_source(error))?
    }

    fn pipe_owner(&self, pipe: &Pipe) -> Result<Principal> {
        match &pipe.owner {
            Some(owner) if self.has_user(owner) => Ok(Principal::user(owner)),
            None if !self.is_guarded() => Ok(Principal::anonymous()),
            _ => Err(Error::new(ErrorKind::Denied, "the creator of the pipe is not a user any more")
                .with_hint("drop it, and let an administrator create it again")),
        }
    }
}
