//! The thread that writes a Parquet file, while the backend goes on with the query.
//!
//! It gets the rows of a row group at a time, and owns them and the file. It never calls the server. The
//! backend waits where the thread is a row group behind, and looks for interrupts meanwhile. Where the
//! backend gives up, the thread finds nobody at the other end, and ends without finishing the file.

use std::fs::File;
use std::io::BufWriter;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use files::parquet::{ParquetWriter, Shredded, Written, to_field};
use files::{Error, Field, Result};

use super::statement::ParquetCopy;
use crate::host::worker;

/// How long the backend sleeps between two looks.
const PAUSE: Duration = Duration::from_millis(1);

/// What the thread gets.
enum Work {
    /// Rows of a row group: the entries of each column of single values.
    Rows(Vec<Shredded>),
    /// There are no more.
    End,
}

/// The backend's end.
pub struct Writer {
    to: SyncSender<Work>,
    /// None once it has told how it ended.
    thread: Option<JoinHandle<Result<()>>>,
}

impl Writer {
    /// Starts the thread. `filtered` says which columns get bloom filters.
    ///
    /// # Errors
    /// Where there is none to be had, or a column is not written.
    pub fn start(
        file: File,
        columns: &[(String, Written)],
        copy: &ParquetCopy,
        filtered: Vec<bool>,
    ) -> Result<Self> {
        let mut writer = ParquetWriter::of(BufWriter::new(file), columns, copy.codec)?;
        if let Some(level) = copy.level {
            writer.set_level(level);
        }
        writer.set_filters(filtered);
        let fields: Vec<Field> = writer.leaves().cloned().collect();
        // One row group waits while another is written.
        let (to, from) = sync_channel(1);
        let thread = worker::spawn("colonnade parquet", move || work(writer, &fields, &from))?;
        Ok(Self { to, thread: Some(thread) })
    }

    /// Hands rows over.
    ///
    /// # Errors
    /// Those of earlier rows.
    pub fn write(&mut self, rows: Vec<Shredded>) -> Result<()> {
        self.send(Work::Rows(rows))
    }

    fn send(&mut self, mut work: Work) -> Result<()> {
        loop {
            pgrx::check_for_interrupts!();
            match self.to.try_send(work) {
                Ok(()) => return Ok(()),
                // The thread has ended early.
                Err(TrySendError::Disconnected(_)) => return self.ended(),
                Err(TrySendError::Full(back)) => work = back,
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Waits until the file is on the device.
    ///
    /// # Errors
    /// Where a value has no place in the file, or it cannot be written.
    pub fn finish(mut self) -> Result<()> {
        self.send(Work::End)?;
        while self.thread.as_ref().is_some_and(|thread| !thread.is_finished()) {
            pgrx::check_for_interrupts!();
            std::thread::sleep(PAUSE);
        }
        self.ended()
    }

    /// How the thread has ended, or is about to.
    fn ended(&mut self) -> Result<()> {
        let failed = || Error::Malformed("the thread that writes the file has failed".into());
        match self.thread.take() {
            Some(thread) => thread.join().unwrap_or_else(|_| Err(failed())),
            None => Err(failed()),
        }
    }
}

/// What the thread does.
fn work(mut writer: ParquetWriter<BufWriter<File>>, fields: &[Field], from: &Receiver<Work>) -> Result<()> {
    loop {
        match from.recv() {
            Ok(Work::Rows(rows)) => {
                let rows = rows.into_iter().zip(fields).map(|(column, field)| {
                    Ok(Shredded { values: to_field(column.values, field)?, ..column })
                });
                writer.write_shredded(&rows.collect::<Result<Vec<_>>>()?)?;
            }
            Ok(Work::End) => {
                let out = writer.finish()?;
                let file = out.into_inner().map_err(|problem| Error::Io(problem.into_error()))?;
                file.sync_all()?;
                return Ok(());
            }
            // The backend has given up.
            Err(_) => return Ok(()),
        }
    }
}
