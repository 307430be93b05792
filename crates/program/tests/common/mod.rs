//! What the tests of the program share: folders of their own, and the program as it is called.
#![allow(dead_code)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use files::column::{Column, ColumnWriter, WriteOptions};
use vector::{LogicalType, Vector, VectorBuilder};

/// A folder that nobody else has, taken away at the end.
pub struct Folder(pub PathBuf);

impl Folder {
    /// Makes it. Of tests each has another name.
    pub fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("colonnade-program-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Runs the program in a folder.
pub fn run(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_colonnade")).args(arguments).current_dir(folder).output().unwrap()
}

/// What it prints; it must end well.
pub fn printed(folder: &Path, arguments: &[&str]) -> String {
    let output = run(folder, arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// What it complains of, and how it ends.
pub fn complaint(folder: &Path, arguments: &[&str]) -> (i32, String) {
    let output = run(folder, arguments);
    (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
}

/// A column of a file.
pub fn column(number: u32, name: &str, declared: &str, logical: LogicalType) -> Column {
    Column { number, name: name.into(), declared: declared.into(), logical }
}

/// The vector that a function fills.
pub fn vector(logical: LogicalType, push: impl FnOnce(&mut VectorBuilder)) -> Vector {
    let mut builder = VectorBuilder::new(logical);
    push(&mut builder);
    builder.finish(&|_, _, _| Box::default())
}

/// Writes a column file of these rows.
pub fn write(path: &Path, columns: Vec<Column>, rows: Vec<Vector>) {
    let mut writer = ColumnWriter::create(path, columns, WriteOptions::default()).unwrap();
    writer.write(rows).unwrap();
    writer.finish().unwrap();
}
