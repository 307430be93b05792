//! Which files a name stands for, and what the folders that they are in say of their rows.
//!
//! A name is that of a file, of a folder (all Parquet files below it), or a pattern. Folders called
//! `key=value`, as Hive makes them, say that all rows below have this value in a column of that name.

use std::collections::BTreeSet;
use std::path::{Component, Path};

use glob::Pattern;

use crate::{Error, FilePath, Result};

/// What Hive calls the folder of rows whose key is NULL.
const OF_NULL: &str = "__HIVE_DEFAULT_PARTITION__";
/// Stands for any number of folders.
const FOLDERS: &str = "**";
/// What a folder stands for, below it.
const OF_FOLDER: &str = "**/*.parquet";

/// What a name says of one folder or file on the way.
enum Part {
    /// Any number of folders.
    Folders,
    /// This name.
    Name(String),
    /// Names that match. Those that are hidden match only if the pattern begins as they do.
    Pattern { pattern: Pattern, first: Option<char> },
}

impl Part {
    fn of(text: &str) -> Result<Self> {
        Ok(match text {
            FOLDERS => Self::Folders,
            _ if !has_pattern(text) => Self::Name(text.to_owned()),
            _ => {
                let problem = |problem| Error::Unsupported(format!("pattern {text}: {problem}"));
                Self::Pattern { pattern: Pattern::new(text).map_err(problem)?, first: text.chars().next() }
            }
        })
    }
}

fn has_pattern(text: &str) -> bool {
    text.contains(['*', '?', '['])
}

/// The files that a name stands for, each once, by their names in order. There is one at least. `pause` is
/// called now and then.
///
/// # Errors
/// `Io` where there is none, or a folder cannot be read; `Unsupported` for a pattern that is none.
pub fn files_of(name: &FilePath, pause: &dyn Fn()) -> Result<Vec<FilePath>> {
    let (start, rest) = name.start();
    let text = || rest.to_str().ok_or_else(|| Error::Unsupported("a pattern that is not UTF-8".into()));
    let (folder, pattern) = match name.metadata() {
        Ok(there) if there.is_dir() => (name, OF_FOLDER),
        Err(_) if has_pattern(text()?) => (&start, text()?),
        _ => return Ok(vec![name.to_owned()]),
    };
    let parts = pattern.split('/').filter(|part| !part.is_empty()).map(Part::of);
    let mut parts = parts.collect::<Result<Vec<_>>>()?;
    // Twice any number is any number, and would be walked through twice.
    parts.dedup_by(|later, part| matches!((later, part), (Part::Folders, Part::Folders)));
    let mut found = BTreeSet::new();
    walk(folder, &parts, pause, &mut found)?;
    match found.is_empty() {
        true => Err(std::io::Error::new(std::io::ErrorKind::NotFound, "no file matches").into()),
        false => Ok(found.into_iter().collect()),
    }
}

/// Adds the files below a folder that the rest of a name stands for, or the file itself where nothing is
/// left.
///
/// Links to folders are not followed as `Part::Folders`, because they may lead in circles. Of a bounded name
/// (`FilePath`) no link is followed.
fn walk(path: &FilePath, parts: &[Part], pause: &dyn Fn(), found: &mut BTreeSet<FilePath>) -> Result<()> {
    pause();
    let Some((part, rest)) = parts.split_first() else {
        if path.is_file() {
            found.insert(path.clone());
        }
        return Ok(());
    };
    match part {
        Part::Name(name) => return walk(&path.join(name), rest, pause, found),
        Part::Folders => walk(path, rest, pause, found)?,
        Part::Pattern { .. } => {}
    }
    let entries = match path.entries() {
        // What lies on the way may be a file, or nothing.
        Err(problem) if !path.is_dir() || problem.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for (name, is_folder) in entries {
        // Names that are not UTF-8 match nothing.
        let Ok(name) = name.into_string() else { continue };
        let rest = match part {
            Part::Folders if is_folder && !is_hidden(&name) => parts,
            Part::Pattern { pattern, first }
                if (name.chars().next() == *first || !is_hidden(&name)) && pattern.matches(&name) =>
            {
                rest
            }
            _ => continue,
        };
        walk(&path.join(&name), rest, pause, found)?;
    }
    Ok(())
}

/// Names that other systems pass over: of what is being written, of logs and of the file system. A key's name
/// may begin with an underscore.
fn is_hidden(name: &str) -> bool {
    name.starts_with('.') || (name.starts_with('_') && !name.contains('='))
}

/// What the folders say that a file is in: keys and their values. None: NULL.
pub fn keys_of(path: &Path) -> Vec<(String, Option<String>)> {
    let folders = path.parent().into_iter().flat_map(Path::components);
    let key = |folder: Component<'_>| {
        let Component::Normal(name) = folder else { return None };
        let (key, value) = name.to_str()?.split_once('=')?;
        let value = if value == OF_NULL { None } else { Some(unescaped(value)?) };
        Some((unescaped(key)?, value))
    };
    folders.filter_map(key).collect()
}

/// Characters that Hive writes as a percent sign and two digits, as themselves. None: not UTF-8.
fn unescaped(text: &str) -> Option<String> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let digits =
            after.get(..2).filter(|_| first == b'%').and_then(|digits| std::str::from_utf8(digits).ok());
        let digits = digits.filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                out.push(byte);
                rest = after.get(2..).unwrap_or(&[]);
            }
            None => {
                out.push(first);
                rest = after;
            }
        }
    }
    String::from_utf8(out).ok()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    #[test]
    fn names_are_files_folders_or_patterns() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        for name in [
            "year=2025/month=1/b.parquet",
            "year=2025/month=1/a.parquet",
            "year=2026/c.parquet",
            "x.parquet",
            "[y].parquet",
            "z.txt",
            ".hidden/d.parquet",
            "_temporary/0/e.parquet",
            "year=2026/_f.parquet",
        ] {
            let path = root.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, b"").unwrap();
        }
        let found = |name: &str| {
            let files = files_of(&root.join(name).into(), &|| {});
            files.map(|all| {
                let names =
                    all.iter().map(|path| path.as_path().strip_prefix(root).unwrap().display().to_string());
                names.collect::<Vec<_>>().join(" ")
            })
        };
        // Circles, a second name, and a name that is not UTF-8.
        std::os::unix::fs::symlink(".", root.join("loop")).unwrap();
        std::os::unix::fs::symlink("year=2026", root.join("again")).unwrap();
        let strange = std::ffi::OsStr::from_bytes(b"\xff.parquet");
        fs::write(root.join(strange), b"").unwrap();
        assert_eq!(found("z.txt").unwrap(), "z.txt");
        assert_eq!(found("[y].parquet").unwrap(), "[y].parquet");
        assert_eq!(found("year=2025").unwrap(), "year=2025/month=1/a.parquet year=2025/month=1/b.parquet");
        assert_eq!(found("*.parquet").unwrap(), "[y].parquet x.parquet");
        assert_eq!(found("year=*/c.parquet").unwrap(), "year=2026/c.parquet");
        assert_eq!(found("**/?.parquet").unwrap().split(' ').count(), 4);
        assert_eq!(found("**/**/**/?.parquet").unwrap().split(' ').count(), 4);
        assert_eq!(found("").unwrap().split(' ').count(), 5);
        assert_eq!(found("year=2026/_*").unwrap(), "year=2026/_f.parquet");
        assert_eq!(found("again/*.parquet").unwrap(), "again/c.parquet");
        assert_eq!(found("_temporary/**/*").unwrap(), "_temporary/0/e.parquet");
        assert!(found("*.none").unwrap_err().to_string().contains("no file"));
        // A file that is not there is told when it is opened.
        assert_eq!(found("none.parquet").unwrap(), "none.parquet");
    }

    #[test]
    fn a_bounded_name_leads_through_no_link() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("[in]");
        fs::create_dir_all(root.join("a/b")).unwrap();
        fs::create_dir(folder.path().join("out")).unwrap();
        for name in ["out/s.parquet", "[in]/x.parquet", "[in]/a/b/y.parquet"] {
            fs::write(folder.path().join(name), b"").unwrap();
        }
        std::os::unix::fs::symlink("../out", root.join("link")).unwrap();
        std::os::unix::fs::symlink("../out/s.parquet", root.join("s.parquet")).unwrap();
        std::os::unix::fs::symlink("a", root.join("c")).unwrap();
        let found = |name: &str| {
            let files = files_of(&FilePath::below(&root, &root.join(name)).unwrap(), &|| {});
            files.map(|all| {
                let names =
                    all.iter().map(|path| path.as_path().strip_prefix(&root).unwrap().display().to_string());
                names.collect::<Vec<_>>().join(" ")
            })
        };
        assert_eq!(found("").unwrap(), "a/b/y.parquet x.parquet");
        assert_eq!(found("*.parquet").unwrap(), "x.parquet");
        assert_eq!(found("**/*").unwrap(), "a/b/y.parquet x.parquet");
        assert_eq!(found("*/*/*").unwrap(), "a/b/y.parquet");
        for name in ["link/*.parquet", "l*/s.parquet", "c/b/*", "s.parque?"] {
            assert!(found(name).unwrap_err().to_string().contains("no file"), "{name}");
        }
        // A link that is named itself is told when it is opened.
        assert_eq!(found("s.parquet").unwrap(), "s.parquet");
    }

    #[test]
    fn folders_say_what_rows_have() {
        let keys = |path: &str| keys_of(Path::new(path));
        let some = |key: &str, value: &str| (key.to_owned(), Some(value.to_owned()));
        assert_eq!(
            keys("/d/year=2025/city=K%C3%B6ln%2F1/x=y.parquet"),
            [some("year", "2025"), some("city", "Köln/1")]
        );
        assert_eq!(keys("/d/a=__HIVE_DEFAULT_PARTITION__/b=/f"), [("a".to_owned(), None), some("b", "")]);
        assert_eq!(keys("/d/plain/100%/f"), []);
    }
}
