//! The name of a file, and how far it may lead.
//!
//! A host names files for its users. Where a user may have only those below a folder (the *root*), each use
//! walks from the root, folder by folder, and follows no symbolic link. So neither a link nor a folder that
//! is exchanged meanwhile leads out, and nothing that was looked at before has to be trusted. The root itself
//! is the administrator's: links on the way to it are followed.
//!
//! Invariant: below a root no path is handed to the system but the root's and single names.

use std::ffi::OsString;
use std::fmt;
use std::fs::{self, File, Metadata};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{self as system, AtFlags, CWD, Dir, FileType, Mode, OFlags};

/// How folders on the way are opened.
const FOLDER: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// The name of a file or folder, and the root that it may not leave.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FilePath {
    path: Arc<Path>,
    root: Option<Arc<Path>>,
}

impl From<&Path> for FilePath {
    /// A name that may lead anywhere.
    fn from(path: &Path) -> Self {
        Self { path: path.into(), root: None }
    }
}

impl From<PathBuf> for FilePath {
    fn from(path: PathBuf) -> Self {
        path.as_path().into()
    }
}

/// The folder that has a file, and the file's name there.
struct Place<'a> {
    /// None: where the process is.
    folder: Option<OwnedFd>,
    name: &'a Path,
}

impl FilePath {
    /// A name that may not leave a folder. None: it is not below that by its parts, or one of them is `..`.
    pub fn below(root: &Path, path: &Path) -> Option<Self> {
        let rest = path.strip_prefix(root).ok()?;
        let is_name = |part: Component<'_>| matches!(part, Component::Normal(_));
        rest.components().all(is_name).then(|| Self { path: path.into(), root: Some(root.into()) })
    }

    /// The name.
    pub fn as_path(&self) -> &Path {
        &self.path
    }

    /// The name, for messages.
    pub fn display(&self) -> impl fmt::Display {
        self.path.display()
    }

    /// Whether it may lead to some files only.
    pub const fn is_bounded(&self) -> bool {
        self.root.is_some()
    }

    /// Where a pattern begins whose first part may be any, and the rest of this name.
    pub fn start(&self) -> (Self, &Path) {
        let start = self.root.as_deref().unwrap_or_else(|| Path::new("/"));
        let rest = self.path.strip_prefix(start).unwrap_or(&self.path);
        (Self { path: start.into(), root: self.root.clone() }, rest)
    }

    /// A name in this folder.
    #[must_use]
    pub fn join(&self, name: impl AsRef<Path>) -> Self {
        Self { path: self.path.join(name).into(), root: self.root.clone() }
    }

    /// Another name in the same folder.
    #[must_use]
    pub fn with_file_name(&self, name: &str) -> Self {
        Self { path: self.path.with_file_name(name).into(), root: self.root.clone() }
    }

    /// The name with something behind it.
    #[must_use]
    pub fn with_ending(&self, ending: &str) -> Self {
        let mut name = self.path.as_os_str().to_owned();
        name.push(ending);
        Self { path: PathBuf::from(name).into(), root: self.root.clone() }
    }

    /// What has this name.
    ///
    /// # Errors
    /// Where there is nothing, and where a bounded name has a link in it.
    pub fn metadata(&self) -> io::Result<Metadata> {
        if self.root.is_none() {
            return fs::metadata(&self.path);
        }
        let found = File::from(self.open_with(OFlags::PATH, Mode::empty())?).metadata()?;
        if found.is_symlink() { Err(self.refusal(&self.path)) } else { Ok(found) }
    }

    /// Whether there is something.
    ///
    /// # Errors
    /// As `metadata`, but for that there is nothing.
    pub fn exists(&self) -> io::Result<bool> {
        match self.metadata() {
            Ok(_) => Ok(true),
            Err(problem) if problem.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(problem) => Err(problem),
        }
    }

    /// Whether it is a plain file.
    pub fn is_file(&self) -> bool {
        self.metadata().is_ok_and(|found| found.is_file())
    }

    /// Whether it is a folder.
    pub fn is_dir(&self) -> bool {
        self.metadata().is_ok_and(|found| found.is_dir())
    }

    /// Opens a file for reading, and perhaps for writing.
    ///
    /// # Errors
    /// As the system's. A bounded name is to be that of a plain file, without links.
    pub fn open(&self, to_write: bool) -> io::Result<File> {
        let access = if to_write { OFlags::RDWR } else { OFlags::RDONLY };
        if self.root.is_none() {
            return Ok(self.open_with(access, Mode::empty())?.into());
        }
        // A pipe in the file's place would be waited for.
        let file = File::from(self.open_with(access | OFlags::NONBLOCK | OFlags::NOCTTY, Mode::empty())?);
        match file.metadata()?.is_file() {
            true => Ok(file),
            false => Err(io::Error::other("it is no file, or not a plain one")),
        }
    }

    /// Makes a file with these rights, which is open for reading and writing.
    ///
    /// # Errors
    /// As the system's; also where the name is taken.
    pub fn create_new(&self, mode: u32) -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
        Ok(self.open_with(flags, Mode::from_raw_mode(mode))?.into())
    }

    /// Gives the file a second name.
    ///
    /// # Errors
    /// As the system's; also where the name is taken.
    pub fn link_as(&self, other: &Self) -> io::Result<()> {
        let (from, to) = (self.place()?, other.place()?);
        Ok(system::linkat(from.folder(), from.name, to.folder(), to.name, AtFlags::empty())?)
    }

    /// Gives the file another name, in the place of what has that name.
    ///
    /// # Errors
    /// As the system's.
    pub fn rename_to(&self, other: &Self) -> io::Result<()> {
        let (from, to) = (self.place()?, other.place()?);
        Ok(system::renameat(from.folder(), from.name, to.folder(), to.name)?)
    }

    /// Takes the name of a file away.
    ///
    /// # Errors
    /// As the system's.
    pub fn remove(&self) -> io::Result<()> {
        let place = self.place()?;
        Ok(system::unlinkat(place.folder(), place.name, AtFlags::empty())?)
    }

    /// Waits until the names in the file's folder are on the device.
    ///
    /// # Errors
    /// As the system's.
    pub fn sync_folder(&self) -> io::Result<()> {
        let Some(folder) = self.path.parent() else { return Ok(()) };
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        Self { path: folder.into(), root: self.root.clone() }.open_folder()?.sync_all()
    }

    /// What is in a folder: names, and whether each is one of a folder. Links are none. Of a bounded name
    /// links are not among them.
    ///
    /// # Errors
    /// As the system's.
    pub fn entries(&self) -> io::Result<Vec<(OsString, bool)>> {
        if self.root.is_none() {
            let entry = |entry: io::Result<fs::DirEntry>| {
                let entry = entry?;
                Ok((entry.file_name(), entry.file_type()?.is_dir()))
            };
            return fs::read_dir(&self.path)?.map(entry).collect();
        }
        let folder = self.open_folder()?;
        let mut found = Vec::new();
        for entry in Dir::read_from(&folder)? {
            let entry = entry?;
            let name = std::ffi::OsStr::from_bytes(entry.file_name().to_bytes());
            if name == "." || name == ".." {
                continue;
            }
            let kind = match entry.file_type() {
                FileType::Unknown => kind_of(&folder, Path::new(name)).unwrap_or(FileType::Unknown),
                known => known,
            };
            if kind != FileType::Symlink {
                found.push((name.to_owned(), kind == FileType::Directory));
            }
        }
        Ok(found)
    }

    fn open_folder(&self) -> io::Result<File> {
        Ok(self.open_with(OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty())?.into())
    }

    /// Opens what has this name, but no link below a root.
    fn open_with(&self, flags: OFlags, mode: Mode) -> io::Result<OwnedFd> {
        let place = self.place()?;
        let links = if self.root.is_some() { OFlags::NOFOLLOW } else { OFlags::empty() };
        let opened = system::openat(place.folder(), place.name, flags | links | OFlags::CLOEXEC, mode);
        opened.map_err(|problem| self.told(&place.folder(), place.name, &self.path, problem))
    }

    /// Opens the folder that has it, where the name is bounded.
    fn place(&self) -> io::Result<Place<'_>> {
        let Some(root) = &self.root else { return Ok(Place { folder: None, name: &self.path }) };
        let mut folder = system::openat(CWD, &**root, FOLDER, Mode::empty())?;
        let rest = self.path.strip_prefix(root).map_err(|_| self.refusal(&self.path))?;
        // The root itself is a name in itself.
        let name = rest.file_name().map_or(Path::new("."), Path::new);
        let mut walked = root.to_path_buf();
        for part in rest.parent().into_iter().flat_map(Path::components) {
            let Component::Normal(part) = part else { return Err(self.refusal(&self.path)) };
            walked.push(part);
            let next = system::openat(&folder, part, FOLDER | OFlags::NOFOLLOW, Mode::empty());
            folder = next.map_err(|problem| self.told(&folder, Path::new(part), &walked, problem))?;
        }
        Ok(Place { folder: Some(folder), name })
    }

    /// The error of a name that was not opened: that of a link says so.
    fn told(&self, folder: &impl AsFd, name: &Path, path: &Path, problem: rustix::io::Errno) -> io::Error {
        match self.root {
            Some(_) if kind_of(folder, name) == Some(FileType::Symlink) => self.refusal(path),
            _ => problem.into(),
        }
    }

    fn refusal(&self, path: &Path) -> io::Error {
        let (path, root) = (path.display(), self.root.as_deref().unwrap_or_else(|| Path::new("/")));
        let text =
            format!("\"{path}\" is a symbolic link, and none is followed below \"{}\"", root.display());
        io::Error::new(io::ErrorKind::PermissionDenied, text)
    }
}

impl Place<'_> {
    fn folder(&self) -> rustix::fd::BorrowedFd<'_> {
        self.folder.as_ref().map_or(CWD, AsFd::as_fd)
    }
}

/// What a name in a folder is, without following links.
fn kind_of(folder: &impl AsFd, name: &Path) -> Option<FileType> {
    let found = system::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    Some(FileType::from_raw_mode(found.st_mode))
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::fs::symlink;

    use super::*;

    /// A root with files and links, and a file beside it.
    fn place() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("root");
        fs::create_dir_all(root.join("in/deep")).unwrap();
        fs::create_dir(folder.path().join("root-evil")).unwrap();
        fs::write(folder.path().join("secret"), b"secret").unwrap();
        fs::write(folder.path().join("root-evil/secret"), b"secret").unwrap();
        fs::write(root.join("in/deep/file"), b"plain").unwrap();
        symlink(folder.path().join("secret"), root.join("link")).unwrap();
        symlink("..", root.join("up")).unwrap();
        symlink("in/deep", root.join("down")).unwrap();
        (folder, root)
    }

    #[test]
    fn names_are_below_by_their_parts() {
        let below = |path: &str| FilePath::below(Path::new("/data/in"), Path::new(path)).is_some();
        for path in ["/data/in", "/data/in/", "/data/in/a", "/data//in/./a/b", "/data/in/..a"] {
            assert!(below(path), "{path}");
        }
        for path in [
            "/data/in-evil/a",
            "/data",
            "/data/in/../b",
            "/data/in/a/..",
            "data/in/a",
            "/",
            "/data/./../data/in",
        ] {
            assert!(!below(path), "{path}");
        }
    }

    #[test]
    fn a_bounded_name_is_used_as_any_other() {
        let (_folder, root) = place();
        let at = |name: &str| FilePath::below(&root, &root.join(name)).unwrap();
        assert!(
            at("in/deep/file").is_file() && at("in").is_dir() && at("").is_dir() && !at("gone").is_file()
        );
        let mut read = String::new();
        io::Read::read_to_string(&mut at("in/deep/file").open(false).unwrap(), &mut read).unwrap();
        assert_eq!(read, "plain");
        at("in/new").create_new(0o600).unwrap().write_all(b"new").unwrap();
        assert!(at("in/new").create_new(0o600).is_err());
        at("in/new").link_as(&at("in/second")).unwrap();
        at("in/second").rename_to(&at("in/third")).unwrap();
        at("in/third").sync_folder().unwrap();
        at("in/new").remove().unwrap();
        let mut names = at("in").entries().unwrap();
        names.sort();
        assert_eq!(names, [("deep".into(), true), ("third".into(), false)]);
        assert!(at("in/deep").open(false).is_err(), "a folder");
    }

    #[test]
    fn links_below_a_root_are_not_followed() {
        let (folder, root) = place();
        let at = |name: &str| FilePath::below(&root, &root.join(name)).unwrap();
        for name in ["link", "up/secret", "up/root/in/deep/file", "down/file", "up", "down"] {
            let is_refused = |problem: &io::Error| {
                problem.kind() == io::ErrorKind::PermissionDenied
                    && problem.to_string().contains("symbolic link")
            };
            let path = at(name);
            assert!(path.metadata().is_err_and(|problem| is_refused(&problem)), "{name}");
            assert!(path.open(false).is_err_and(|problem| is_refused(&problem)), "{name}");
            assert!(path.open(true).is_err_and(|problem| is_refused(&problem)), "{name}");
            assert!(path.entries().is_err() && !path.is_file() && !path.is_dir(), "{name}");
        }
        for name in ["up/new", "down/new"] {
            assert!(at(name).create_new(0o600).is_err(), "{name}");
            assert!(at("in/deep/file").rename_to(&at(name)).is_err(), "{name}");
            assert!(at("in/deep/file").link_as(&at(name)).is_err(), "{name}");
            assert!(at(name).sync_folder().is_err(), "{name}");
        }
        assert!(at("up/secret").remove().is_err() && folder.path().join("secret").exists());
        assert!(at("up/secret").rename_to(&at("mine")).is_err());
        assert!(at("link").create_new(0o600).is_err());
        assert_eq!(at("").entries().unwrap(), [("in".into(), true)]);
        // The root may be a link itself.
        let other = folder.path().join("other");
        symlink(&root, &other).unwrap();
        assert!(FilePath::below(&other, &other.join("in/deep/file")).unwrap().is_file());
        // A name without a root goes where it leads.
        assert!(
            FilePath::from(root.join("link")).is_file() && FilePath::from(root.join("down/file")).is_file()
        );
    }

    #[test]
    fn a_pipe_is_not_waited_for() {
        let (_folder, root) = place();
        let made = std::process::Command::new("mkfifo").arg(root.join("pipe")).status().unwrap();
        assert!(made.success());
        assert!(FilePath::below(&root, &root.join("pipe")).unwrap().open(false).is_err());
    }
}
