"""Puts one built library into packages: a .deb, its symbols in a second one, and a tar.gz.

Who calls it: scripts/package.sh, with SOURCE_DATE_EPOCH set. The texts are below packaging/.
The files lie where Debian's servers look for them, whatever pg_config the library was built with. What the
packages depend on is read from the library: the versions of the symbols that it takes from glibc and libgcc.
Invariant: equal libraries give equal packages. No time, user, path or order of files of this machine gets in.
"""

import argparse
import gzip
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import tarfile
import tempfile
from email.utils import formatdate
from pathlib import Path

import check_meta
from package_copyright import machine_readable

ROOT = Path(__file__).resolve().parents[1]
TEXTS = ROOT / "packaging"
SUMMARY = "columnar tables and vectorised analytics for PostgreSQL @MAJOR@"
DESCRIPTION = """\
 Colonnade is an extension of PostgreSQL. Its access method colcompress stores
 rows that are loaded in bulk by column, sorted and compressed. The tables keep
 transactions, row locks, constraints and indexes of ordinary ones. Queries run
 on vectors and give the same answers.
"""
SYMBOLS_SUMMARY = "debug symbols for @PACKAGE@"
SYMBOLS_DESCRIPTION = """\
 With these files debuggers and profilers name the functions and lines of the
 library colonnade.so for PostgreSQL @MAJOR@.
"""
# Which package has a library that ours is linked with, and the versions of symbols that count as its version.
LIBRARIES = {"libc.so.6": "libc6", "libm.so.6": "libc6", "ld-linux-x86-64.so.2": "libc6", "ld-linux-aarch64.so.1": "libc6",
             "libgcc_s.so.1": "libgcc-s1"}
SYMBOLS = {"libc6": "GLIBC_", "libgcc-s1": "GCC_"}
# A library that uses this is read by glibc 2.36 and newer.
RELATIVE_RELOCATIONS = "GLIBC_ABI_DT_RELR"


class Unknown(Exception):
    """The library needs something that no package is known for."""


def run(*command):
    done = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          env={**os.environ, "LC_ALL": "C.UTF-8"})
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command))} failed ({done.returncode}):\n{done.stdout}")
    return done.stdout


def numbers(version):
    return tuple(map(int, version.split(".")))


def needed_versions(library):
    """{package: the oldest version that will do}, by what the library takes from others."""
    told = run("readelf", "--wide", "--dynamic", "--version-info", library)
    packages = set()
    for name in re.findall(r"\(NEEDED\).*\[(.*)\]", told):
        if name not in LIBRARIES:
            raise Unknown(f"no package is known that has {name}")
        packages.add(LIBRARIES[name])
    needs = told.partition("Version needs section")[2]
    found = {}
    for package in packages:
        versions = [numbers(version) for version in re.findall(rf"Name: {SYMBOLS[package]}([\d.]+)", needs)]
        if package == "libc6" and RELATIVE_RELOCATIONS in needs:
            versions.append((2, 36))
        newest = list(max(versions))
        # The package of GCC_12.0.0 is of version 12.
        while package == "libgcc-s1" and newest[-1] == 0:
            newest.pop()
        found[package] = ".".join(map(str, newest))
    return found


class Release:
    """What the packages of one library have in common."""

    def __init__(self, library, major, out, quick):
        meta = json.loads((ROOT / "META.json").read_text(encoding="utf-8"))
        self.library, self.major, self.out, self.quick = library, major, out, quick
        self.version, self.maintainer = meta["version"], meta["maintainer"][0]
        self.debian_version = f"{self.version}-{os.environ.get('REVISION') or '1'}"
        self.architecture = run("dpkg", "--print-architecture").strip()
        self.machine = os.uname().machine
        self.epoch = int(os.environ["SOURCE_DATE_EPOCH"])
        self.package = f"postgresql-{major}-colonnade"
        self.needs = needed_versions(library)
        self.copyright = machine_readable(major, self.maintainer)
        self.build_id = re.search(r"Build ID: ([0-9a-f]+)", run("readelf", "--notes", library))[1]

    def filled(self, text):
        """A text with the words between @ signs replaced."""
        words = {"PACKAGE": self.package, "MAJOR": self.major, "VERSION": self.version, "MACHINE": self.machine,
                 "GLIBC": self.needs["libc6"], "GCC": self.needs["libgcc-s1"]}
        return re.sub(r"@([A-Z]+)@", lambda word: str(words[word[1]]), text)

    def text(self, name):
        return self.filled((TEXTS / name).read_text(encoding="utf-8"))


def write(path, content, mode=0o644):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    path.chmod(mode)


def compressed(content):
    return gzip.compress(content.encode(), 9, mtime=0)


def extension_files():
    """The control file and the SQL scripts."""
    return [ROOT / "crates/postgres/colonnade.control", *sorted((ROOT / "crates/postgres/sql").glob("colonnade--*.sql"))]


def split_symbols(release, folder):
    """The library without its symbols, and its symbols: two files of the folder."""
    symbols, library = folder / f"{release.build_id[2:]}.debug", folder / "colonnade.so"
    run("objcopy", "--only-keep-debug", "--compress-debug-sections", release.library, symbols)
    run("strip", "--strip-unneeded", "--remove-section=.comment", "--remove-section=.note", "-o", library, release.library)
    # Debuggers look for the symbols by the build id first, and by this name and checksum beside the library.
    run("objcopy", f"--add-gnu-debuglink={symbols}", library)
    return library, symbols


def installed_kilobytes(tree):
    """The size as Debian counts it: every file by whole kilobytes, one for everything else."""
    size = 0
    for path in tree.rglob("*"):
        size += (path.stat().st_size + 1023) // 1024 if path.is_file() and not path.is_symlink() else 1
    return size


def make_deb(release, tree, name, fields, summary, description):
    """Builds the package of a tree of files. `fields` are those of its control file that only it has."""
    package = {
        "Package": name,
        "Source": "colonnade",
        "Version": release.debian_version,
        "Architecture": release.architecture,
        "Maintainer": release.maintainer,
        "Installed-Size": str(installed_kilobytes(tree)),
        **fields,
        "Priority": "optional",
    }
    control = "".join(f"{field}: {value}\n" for field, value in package.items())
    control += f"Description: {release.filled(summary)}\n{release.filled(description)}"
    files = sorted(path for path in tree.rglob("*") if path.is_file() and not path.is_symlink())
    sums = "".join(f"{hashlib.md5(path.read_bytes()).hexdigest()}  {path.relative_to(tree)}\n" for path in files)
    write(tree / "DEBIAN/control", control)
    write(tree / "DEBIAN/md5sums", sums)
    for path in [tree, *tree.rglob("*")]:
        if path.is_dir() and not path.is_symlink():
            path.chmod(0o755)
    deb = release.out / f"{name}_{release.debian_version}_{release.architecture}.deb"
    # dpkg-deb takes the times of files from SOURCE_DATE_EPOCH. What several threads compress would depend on
    # how many there are.
    compression = ["-Zgzip", "-z1"] if release.quick else ["-Zxz", "-z6"]
    run("dpkg-deb", "--root-owner-group", "--threads-max=1", *compression, "--build", tree, deb)
    return deb


def make_main_deb(release, library, folder):
    tree, doc = folder / "main", folder / "main/usr/share/doc" / release.package
    write(tree / f"usr/lib/postgresql/{release.major}/lib/colonnade.so", library.read_bytes())
    for file in extension_files():
        write(tree / f"usr/share/postgresql/{release.major}/extension" / file.name, file.read_bytes())
    changes = (f"colonnade ({release.debian_version}) unstable; urgency=medium\n\n  * Colonnade {release.version}: changelog.gz says what is new.\n\n"
               f" -- {release.maintainer}  {formatdate(release.epoch)}\n")
    write(doc / "copyright", release.copyright)
    write(doc / "changelog.gz", compressed((ROOT / "CHANGELOG.md").read_text(encoding="utf-8")))
    write(doc / "changelog.Debian.gz", compressed(changes))
    write(doc / "README.Debian", release.text("README.Debian"))
    write(tree / "usr/share/lintian/overrides" / release.package, release.text("lintian-overrides"))
    depends = [f"{package} (>= {version})" for package, version in sorted(release.needs.items())]
    fields = {"Depends": ", ".join([*depends, f"postgresql-{release.major}"]), "Section": "database"}
    return make_deb(release, tree, release.package, fields, SUMMARY, DESCRIPTION)


def make_symbols_deb(release, symbols, folder):
    name, tree = f"{release.package}-dbgsym", folder / "symbols"
    write(tree / "usr/lib/debug/.build-id" / release.build_id[:2] / symbols.name, symbols.read_bytes())
    doc = tree / "usr/share/doc" / name
    doc.parent.mkdir(parents=True)
    doc.symlink_to(release.package)
    fields = {"Depends": f"{release.package} (= {release.debian_version})", "Section": "debug", "Auto-Built-Package": "debug-symbols",
              "Build-Ids": release.build_id}
    return make_deb(release, tree, name, fields, SYMBOLS_SUMMARY, SYMBOLS_DESCRIPTION)


def make_archive(release, library):
    """The tar.gz: the same files below one folder, with a note on how to install them."""
    name = f"colonnade-{release.version}-pg{release.major}-linux-{release.machine}"
    content = {
        "INSTALL": release.text("INSTALL").encode(),
        "LICENSE": (ROOT / "LICENSE").read_bytes(),
        "COPYRIGHT": release.copyright.encode(),
        "CHANGELOG.md": (ROOT / "CHANGELOG.md").read_bytes(),
        "lib/colonnade.so": library.read_bytes(),
        **{f"extension/{file.name}": file.read_bytes() for file in extension_files()},
    }
    folders = ["", *sorted({os.path.dirname(path) for path in content} - {""})]
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for path in [*folders, *sorted(content)]:
            entry = tarfile.TarInfo(f"{name}/{path}".rstrip("/"))
            entry.mtime, entry.uname, entry.gname = release.epoch, "root", "root"
            entry.type, entry.mode = (tarfile.DIRTYPE, 0o755) if path in folders else (tarfile.REGTYPE, 0o644)
            entry.size = len(content.get(path, b""))
            archive.addfile(entry, io.BytesIO(content.get(path, b"")))
    file = release.out / f"{name}.tar.gz"
    file.write_bytes(gzip.compress(packed.getvalue(), 1 if release.quick else 9, mtime=0))
    return file


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("library", type=Path)
    parser.add_argument("major", type=int)
    parser.add_argument("out", type=Path)
    parser.add_argument("--quick", action="store_true", help="compress little")
    options = parser.parse_args()
    if check_meta.main() != 0:
        raise SystemExit("error: the versions do not agree")
    # Others must be able to read what is made, whatever the caller's umask is.
    os.umask(0o022)
    options.out.mkdir(parents=True, exist_ok=True)
    release = Release(options.library, options.major, options.out, options.quick)
    with tempfile.TemporaryDirectory(prefix="colonnade-package-") as folder:
        library, symbols = split_symbols(release, Path(folder))
        made = [make_main_deb(release, library, Path(folder)), make_symbols_deb(release, symbols, Path(folder)), make_archive(release, library)]
    for file in made:
        print(f"{file} ({file.stat().st_size / 1e6:.1f} MB)")


if __name__ == "__main__":
    main()
