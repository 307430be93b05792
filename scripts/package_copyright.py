"""The file `copyright` of the packages: who owns what is in the library, and under which licences.

Who calls it: scripts/package.py. The form is Debian's machine-readable one (DEP-5). The library contains our
crates, the crates that they depend on, C sources that one of these brings along, and Rust's standard library.
`cargo tree` tells the crates, `cargo metadata` their licences and folders. Owners and texts come from the
licence files in those folders. Where a crate has none, its authors are its owners.
Invariant: nothing is guessed. A licence, a standard library's crate or bundled C code that is not known here
is an error, and so is a licence without a text.
"""

import json
import re
import subprocess
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FORMAT = "https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/"
# Licences whose text every Debian system has in /usr/share/common-licenses.
COMMON = {"Apache-2.0": "Apache-2.0", "GPL-2": "GPL-2"}
# SPDX name: DEP-5 name, where they differ.
SHORT_NAMES = {"MIT": "Expat", "BSD-2-Clause": "BSD-2-clause", "BSD-3-Clause": "BSD-3-clause", "GPL-2.0-only": "GPL-2",
               "Apache-2.0 WITH LLVM-exception": "Apache-2.0 with LLVM exception"}
# The first and last words of each licence's text: what stands between them is the licence.
TEXTS = {
    "Expat": ("Permission is hereby granted, free of charge, to any person obtaining a copy of this software", "DEALINGS IN THE SOFTWARE."),
    "BSD-2-clause": ("Redistribution and use in source and binary forms", "POSSIBILITY OF SUCH DAMAGE."),
    "BSD-3-clause": ("Redistribution and use in source and binary forms", "POSSIBILITY OF SUCH DAMAGE."),
    "BSL-1.0": ("Boost Software License - Version 1.0", "DEALINGS IN THE SOFTWARE."),
    "Unicode-3.0": ("Permission is hereby granted, free of charge, to any person obtaining a copy of data files",
                    "authorization of the copyright holder."),
    "Unlicense": ("This is free and unencumbered software released into the public domain.", "unlicense.org"),
    "Zlib": ("This software is provided 'as-is'", "removed or altered from any source distribution."),
    "LLVM exception": ("As an exception, if, as a result of your compiling", "only with respect to the Combined Software."),
}
# Texts that name their owner differ from crate to crate.
NAMES_OWNER = ("BSD-2-clause", "BSD-3-clause")
# Folders of C sources that a crate compiles, which its own licence field does not speak of.
BUNDLED = {("zstd-sys", "zstd"): "BSD-3-Clause OR GPL-2.0-only"}
# What is linked of Rust's standard library: crate, owners, licence. The empty ones are the project's own.
STANDARD_LIBRARY = {
    "addr2line": ("2016-2018 The gimli Developers", "MIT OR Apache-2.0"),
    "adler2": ("Jonas Schievink <jonasschievink@gmail.com>", "MIT OR Apache-2.0"),
    "cfg_if": ("2014 Alex Crichton", "MIT OR Apache-2.0"),
    "compiler_builtins": ("2016 Jorge Aparicio, The LLVM Project and The Rust Project Developers",
                          "MIT AND Apache-2.0 WITH LLVM-exception"),
    "gimli": ("2015 The Rust Project Developers", "MIT OR Apache-2.0"),
    "hashbrown": ("2016 Amanieu d'Antras", "MIT OR Apache-2.0"),
    "libc": ("2014-2020 The Rust Project Developers", "MIT OR Apache-2.0"),
    "memchr": ("2015 Andrew Gallant", "Unlicense OR MIT"),
    "miniz_oxide": ("2017 Frommi, 2017-2024 oyvindln", "MIT OR Zlib OR Apache-2.0"),
    "object": ("2015 The Gimli Developers", "MIT OR Apache-2.0"),
    "rustc_demangle": ("2014 Alex Crichton", "MIT OR Apache-2.0"),
    **dict.fromkeys(("alloc", "core", "panic_unwind", "std", "std_detect", "unwind", "sysroot", "rustc_std_workspace_alloc",
                     "rustc_std_workspace_core", "rustc_std_workspace_std")),
}
# Crates beside the standard library that a library like ours does not link.
NOT_LINKED = {"getopts", "panic_abort", "proc_macro", "profiler_builtins", "rustc_literal_escaper", "test"}
LICENCE_FILE = re.compile(r"(?:licen[cs]e|copying|copyright|notice|unlicense)", re.I)
# A line that names an owner, and not one of a licence's text that begins with the same word.
OWNER = re.compile(r"^\W*copyright(?: \(c\)| ©|:)? *((?:\d|\(c\)|[A-Z<]).*)$", re.I)
NO_OWNER = re.compile(r"^\W*copyright (?:license|owner|notice|holder|and permission|\[|interest|statement|law)|<year>|Free Software Foundation", re.I)


class Unknown(Exception):
    """Something in the library whose licence is not known here."""


def output(*command):
    return subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout


def linked_crates(major):
    """Name and version of every crate in the library for a major version, ours among them."""
    listed = output("cargo", "tree", "--locked", "-p", "colonnade", "--no-default-features", "--features", f"pg{major}",
                    "-e", "normal,no-proc-macro", "--prefix", "none", "-f", "{p}")
    return {(line.split()[0], line.split()[1].lstrip("v")) for line in listed.splitlines()}


def short_names(expression):
    """A licence expression of SPDX as DEP-5 writes it: (MIT OR Apache-2.0) AND X is `Expat or Apache-2.0, and
    X`."""
    text = expression.replace("/", " OR ")
    text = re.sub(r"\(([^()]+)\) AND ", r"\1, and ", text)
    if re.search(r"[()]|, and .* OR | OR [^,]* AND | AND [^,]* OR ", text):
        raise Unknown(f"the licence expression {expression!r} is not of a form that DEP-5 can say here")
    for spdx, name in sorted(SHORT_NAMES.items(), key=lambda item: -len(item[0])):
        text = re.sub(rf"(?<![\w.-]){re.escape(spdx)}(?![\w.-]| WITH)", name, text)
    return re.sub(r"\s+", " ", text.replace(" OR ", " or ").replace(" AND ", " and "))


def names_in(licence):
    """The single licences of what `short_names` gives."""
    return re.split(r",? (?:and|or) ", licence)


def licence_files(folder):
    """The texts of a folder's licence files, without its subfolders."""
    return [file.read_text(encoding="utf-8", errors="replace") for file in sorted(folder.iterdir())
            if file.is_file() and LICENCE_FILE.match(file.name)]


def owners(texts, authors, name):
    """The lines that name owners in licence files. The authors are added where a file names nobody: that of
    the Apache licence never does."""
    found, authors = [], authors or [f"The developers of {name}"]
    for text in texts:
        named = []
        for line in text.splitlines():
            match = None if NO_OWNER.search(line) else OWNER.match(line.strip())
            if match:
                owner = re.sub(r"^\(c\)\s*", "", match[1], flags=re.I).strip().rstrip(".")
                owner = re.sub(r"\. All rights reserved$", "", owner, flags=re.I)
                # Some lines have years only.
                named.append(owner if re.search(r"[A-Za-z]", owner) else f"{owner} {', '.join(authors)}")
        if not named and not re.search(r"Apache License\s+Version 2.0|GNU GENERAL PUBLIC LICENSE", text):
            named = authors
        found += [owner for owner in named if owner not in found]
    return found or authors


def between(text, first, last):
    """The part of a text from some words to others, however its lines are broken; None where it has none."""
    spaced = [r"\s+".join(map(re.escape, words.split())) for words in (first, last)]
    # Texts differ in their quotes.
    found = re.search(rf"[ \t]*{spaced[0]}.*?{spaced[1]}[^\n]*".replace("'", "[\"'`‘’]+"), text, re.S | re.I)
    return found and textwrap.dedent(found[0]).strip()


class Licences:
    """The texts of the licences that paragraphs name."""

    def __init__(self):
        self.texts, self.used = {}, set()

    def learn(self, texts, owner):
        """Takes the licences out of some files. Gives for each of those whose text names its owner what it is
        called here: BSD-3-clause, BSD-3-clause-zstd, or both."""
        called = {}
        for name, (first, last) in TEXTS.items():
            for text in texts:
                part = between(text, first, last)
                if part is None or ("Neither the name" in part) != (name == "BSD-3-clause") and name in NAMES_OWNER:
                    continue
                own = name
                if name in NAMES_OWNER:
                    same = [known for known, other in self.texts.items() if known.startswith(name) and plain(other) == plain(part)]
                    own = same[0] if same else f"{name}-{owner}" if name in self.texts else name
                    called.setdefault(name, []).append(own)
                self.texts.setdefault(own, part)
        return {name: " and ".join(dict.fromkeys(own)) for name, own in called.items()}

    def paragraphs(self):
        for name in sorted(self.used):
            base, _, exception = name.partition(" with ")
            if base in COMMON:
                text = f"On Debian systems the full text is in /usr/share/common-licenses/{COMMON[base]}."
                if exception:
                    text += "\n\nThe exception:\n\n" + self.text(exception)
            else:
                text = self.text(name)
            yield f"License: {name}\n{indented(text)}"

    def text(self, name):
        if name not in self.texts:
            raise Unknown(f"no file has the text of the licence {name}")
        return self.texts[name]


def plain(text):
    return re.sub(r"\W+", " ", text).casefold()


def indented(text):
    """A text as a field of several lines has it: every line begins with a space, an empty one is a point."""
    lines = [part for line in text.splitlines() for part in (textwrap.wrap(line, 100) if len(line) > 100 else [line.rstrip()])]
    return "\n".join(f" {line}" if line else " ." for line in lines)


def paragraph(files, holders, licence, comment=None):
    lines = [f"Files: {files}", "Copyright: " + "\n           ".join(holders), f"License: {licence}"]
    if comment:
        lines += ["Comment:", indented(comment)]
    return "\n".join(lines)


def crate_paragraphs(package, licences):
    """The paragraphs of one crate: itself, and the C sources that it brings along."""
    folder = Path(package["manifest_path"]).parent
    name, version = package["name"], package["version"]
    place = f"vendor/{name}-{version}"
    authors = [re.sub(r"\s*<[^>]*noreply[^>]*>", "", author) for author in package["authors"]]
    texts = licence_files(folder)
    notices = [file for file in folder.iterdir() if re.match(r"notice", file.name, re.I)]
    comment = "\n\n".join(file.read_text(encoding="utf-8") for file in sorted(notices))
    own = licences.learn(texts, name)
    if not package["license"]:
        raise Unknown(f"{name} does not say its licence")
    licence = short_names(package["license"])
    licence = re.sub(r"[^\s,]+", lambda word: own.get(word[0], word[0]), licence)
    licences.used.update(names_in(licence))
    yield paragraph(f"{place}/*", owners(texts, authors, name), licence, comment)
    for inner in sorted({file.parent for file in folder.rglob("*") if file.is_file() and LICENCE_FILE.match(file.name)} - {folder}):
        if not any(inner.rglob("*.c")):
            continue
        where = inner.relative_to(folder).as_posix()
        if (name, where) not in BUNDLED:
            raise Unknown(f"{name} has C sources with a licence of their own in {where}")
        texts = licence_files(inner)
        own = licences.learn(texts, f"{name}-{where}")
        licence = re.sub(r"[^\s,]+", lambda word: own.get(word[0], word[0]), short_names(BUNDLED[name, where]))
        licences.used.update(names_in(licence))
        yield paragraph(f"{place}/{where}/*", owners(texts, [], where), licence)


def standard_library(licences):
    """The paragraphs of Rust's standard library: the compiler's folder says which crates it has."""
    sysroot = Path(output("rustc", "--print", "sysroot").strip())
    release = re.search(r"^release: (.*)$", output("rustc", "-vV"), re.M)[1]
    host = re.search(r"^host: (.*)$", output("rustc", "-vV"), re.M)[1]
    licences.learn([file.read_text(encoding="utf-8") for file in sorted((sysroot / "share/doc/rust/licenses").glob("*.txt"))], "rust")
    crates = {re.sub(r"^lib|-[0-9a-f]+$", "", file.stem) for file in (sysroot / "lib/rustlib" / host / "lib").glob("*.rlib")}
    if "std" not in crates:
        raise Unknown(f"no standard library of Rust below {sysroot}")
    if unknown := sorted(crates - set(STANDARD_LIBRARY) - NOT_LINKED):
        raise Unknown(f"the standard library of Rust {release} has crates whose licences are not known here: {', '.join(unknown)}")
    yield paragraph(f"rust-{release}/library/*", ["The Rust Project Developers"], "Expat or Apache-2.0")
    yield paragraph(f"rust-{release}/library/core/src/unicode/unicode_data.rs", ["1991-2024 Unicode, Inc"], "Unicode-3.0")
    licences.used.update({"Expat", "Apache-2.0", "Unicode-3.0"})
    for name in sorted(crates):
        if STANDARD_LIBRARY.get(name):
            owner, expression = STANDARD_LIBRARY[name]
            licence = short_names(expression)
            licences.used.update(names_in(licence))
            yield paragraph(f"rust-{release}/vendor/{name}/*", [owner], licence)


def machine_readable(major, maintainer):
    """The whole file, for the library of a major version of PostgreSQL."""
    linked = linked_crates(major)
    packages = json.loads(output("cargo", "metadata", "--format-version", "1", "--locked"))["packages"]
    crates = sorted((p for p in packages if (p["name"], p["version"]) in linked and p["source"]), key=lambda p: (p["name"], p["version"]))
    licences = Licences()
    parts = [
        "\n".join([
            f"Format: {FORMAT}", "Upstream-Name: Colonnade", f"Upstream-Contact: {maintainer}", "Source: the repository of Colonnade",
            "Comment:", indented("The library contains the crates of vendor/, as `cargo vendor --versioned-dirs` lays them out.\n"
                                 "It contains Rust's standard library as well, here called rust-VERSION."),
        ]),
        paragraph("*", ["The Colonnade contributors"], "Apache-2.0"),
    ]
    licences.used.add("Apache-2.0")
    # The standard library's texts come first, as they are of the plainest form.
    standard = list(standard_library(licences))
    for package in crates:
        parts += crate_paragraphs(package, licences)
    return "\n\n".join([*parts, *standard, *licences.paragraphs()]) + "\n"
