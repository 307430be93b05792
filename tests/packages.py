"""The packages of scripts/package.sh: what is in them, and that they install, work and go away again.

PG_MAJORS='15 16 17 18' names the major versions; default: that of the server under test. In the long form
(`make test-packages`) they are made of the optimised build, and lintian looks at them.

Where the server is Debian's, apt installs the package as on a user's machine. That happens in a mount
namespace of its own, with layers in memory over /usr, /etc and /var. The machine itself is left as it is, and
so are its other servers. Where this program may not have one (no root, some containers), dpkg installs below
a folder, with a copy of its data base. NO_NAMESPACE=1 asks for that. Another server, as those of
scripts/postgres.sh, is copied, and the package is unpacked into the copy.
"""

import gzip
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

from harness.checks import Checks
from harness.place import chosen_pg_config
from harness.place import major as tested_major
from harness.server import ROOT, TARGET, Server, ServerError, end_orderly, private_base, run, running_as_root

sys.path[:0] = [str(ROOT / "scripts")]
import check_meta  # noqa: E402
import package_copyright  # noqa: E402

LONG = os.environ.get("COLONNADE_LONG") == "1"
PROFILE = "release" if LONG else "dev"
LAYERED = ("usr", "etc", "var")
VERSION, SHORT_VERSION = check_meta.version(), check_meta.control_version()
# Rows that are loaded, changed and asked for with the installed library.
USE = """
CREATE EXTENSION colonnade;
CREATE TABLE t (id int PRIMARY KEY, v text) USING colcompress WITH (orderby = 'id');
INSERT INTO t SELECT g, 'row ' || g FROM generate_series(1, 30000) g;
CREATE TABLE twin USING heap AS TABLE t;
UPDATE t SET v = 'changed' WHERE id % 1000 = 0; UPDATE twin SET v = 'changed' WHERE id % 1000 = 0;
"""
ASK = """
SELECT extversion FROM pg_extension WHERE extname = 'colonnade';
SELECT (SELECT md5(string_agg(t::text, ',' ORDER BY id)) FROM t) = (SELECT md5(string_agg(twin::text, ',' ORDER BY id)) FROM twin);
SELECT sum(row_count) > 0 FROM engine.colcompress_stripes;
SELECT count(*) FROM engine.verify('t') WHERE severity = 'error';
"""
ANSWER = f"{SHORT_VERSION}\nt\nt\n0"

checks = Checks("packages")
check = checks.say


class Packages:
    """The files that one call of scripts/package.sh makes for a major version."""

    def __init__(self, major, out):
        self.major, self.out, self.name = major, out, f"postgresql-{major}-colonnade"
        architecture = run(["dpkg", "--print-architecture"]).stdout.strip()
        self.main = out / f"{self.name}_{VERSION}-1_{architecture}.deb"
        self.symbols = out / f"{self.name}-dbgsym_{VERSION}-1_{architecture}.deb"
        self.archive = out / f"colonnade-{VERSION}-pg{major}-linux-{os.uname().machine}.tar.gz"
        self.all = (self.main, self.symbols, self.archive)

    def make(self, build, **environment):
        """Runs the script; `build` says whether the library is built first."""
        choice = {"OUT": str(self.out), "PG_MAJORS": self.major, "NO_BUILD": "" if build else "1", **environment}
        done = run([ROOT / "scripts/package.sh", PROFILE], check=False, environment=choice, umask=0o077 if environment else 0o022)
        check(f"{self.major}: the packages are made", done.returncode == 0 and all(file.is_file() for file in self.all), done.stdout)

    def unpack(self, folder):
        """The files of both packages below a folder, which is given back."""
        for deb in (self.main, self.symbols):
            run(["dpkg-deb", "-x", deb, folder])
        return folder

    def field(self, deb, name):
        return run(["dpkg-deb", "--field", deb, name]).stdout.strip()


def digests(files):
    return [hashlib.sha256(file.read_bytes()).hexdigest() for file in files]


def paths(folder):
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir() or path.is_symlink()}


# -- what is in them ------------------------------------------------------------------------------


def look_inside(packages, library, folder):
    """Files, control fields and texts of the packages that were made of a library."""
    major, name = packages.major, packages.name
    tree = packages.unpack(folder / "tree")
    build_id = re.search(r"Build ID: ([0-9a-f]+)", run(["readelf", "--notes", library]).stdout)[1]
    place, doc = f"usr/lib/postgresql/{major}/lib/colonnade.so", f"usr/share/doc/{name}"
    debug = f"usr/lib/debug/.build-id/{build_id[:2]}/{build_id[2:]}.debug"
    scripts = [path.name for path in (ROOT / "crates/postgres/sql").glob("colonnade--*.sql")]
    wanted = {place, debug, f"{doc}-dbgsym", f"usr/share/lintian/overrides/{name}",
              *(f"usr/share/postgresql/{major}/extension/{file}" for file in ("colonnade.control", *scripts)),
              *(f"{doc}/{file}" for file in ("copyright", "changelog.gz", "changelog.Debian.gz", "README.Debian"))}
    check(f"{major}: the packages have these files and no others", paths(tree) == wanted, paths(tree) ^ wanted)
    listed = [line.split() for deb in (packages.main, packages.symbols) for line in run(["dpkg-deb", "-c", deb], environment={"TZ": "UTC"}).stdout.splitlines()]
    odd = [line for line in listed if line[1] != "root/root" or line[0] not in ("drwxr-xr-x", "-rw-r--r--", "lrwxrwxrwx")]
    check(f"{major}: all files are root's and readable", len(listed) > len(wanted) and not odd, odd)

    committed = run(["git", "-C", ROOT, "log", "-1", "--format=%cd", "--date=format-local:%Y-%m-%d %H:%M"], environment={"TZ": "UTC"}).stdout.strip()
    times = {" ".join(line[3:5]) for line in listed}
    check(f"{major}: all files are of the time of the last commit", times == {committed}, times)

    run(["dpkg-deb", "--control", packages.main, folder / "control"])
    sums = dict(line.split("  ")[::-1] for line in (folder / "control/md5sums").read_text().splitlines())
    mine = {path: hashlib.md5((tree / path).read_bytes()).hexdigest() for path in wanted - {debug, f"{doc}-dbgsym"}}
    check(f"{major}: md5sums are those of the files", sums == mine, sums)
    check(f"{major}: no script runs at installation", paths(folder / "control") == {"control", "md5sums"}, paths(folder / "control"))
    depends = packages.field(packages.main, "Depends")
    check(f"{major}: it depends on the server", depends.endswith(f", postgresql-{major}"), depends)
    if shutil.which("dpkg-shlibdeps"):
        (folder / "source/debian").mkdir(parents=True)
        (folder / "source/debian/control").write_text("Source: x\n\nPackage: x\nArchitecture: any\n")
        told = run(["dpkg-shlibdeps", "-O", tree / place], cwd=folder / "source").stdout
        found = re.search(r"shlibs:Depends=(.*)", told)
        check(f"{major}: Debian's own tool finds the same dependencies", found and f"{found[1]}, postgresql-{major}" == depends, f"{told} {depends}")
    pinned = packages.field(packages.symbols, "Depends")
    check(f"{major}: the symbols are those of this library", pinned == f"{name} (= {VERSION}-1)" and packages.field(packages.symbols, "Build-Ids") == build_id, pinned)

    sections = run(["readelf", "--wide", "--sections", tree / place]).stdout
    check(f"{major}: the library has no symbols for debuggers", ".dynsym" in sections and ".debug_" not in sections and ".symtab" not in sections, sections)
    check(f"{major}: it names the file that has them", f"{build_id[2:]}.debug" in run(["readelf", "--string-dump=.gnu_debuglink", tree / place]).stdout)
    check(f"{major}: it exports what the built one does", exported(tree / place) == exported(library) and "_PG_init" in exported(library))

    read_me = (tree / doc / "README.Debian").read_text()
    missing = [text for text in ("shared_preload_libraries = 'colonnade'", f"restart postgresql@{major}-main", "CREATE EXTENSION") if text not in read_me]
    check(f"{major}: README.Debian says how to go on", not missing and "@PACKAGE" not in read_me, missing)
    (folder / "changelog").write_bytes(gzip.decompress((tree / doc / "changelog.Debian.gz").read_bytes()))
    if shutil.which("dpkg-parsechangelog"):
        changes = run(["dpkg-parsechangelog", "-l", folder / "changelog"]).stdout
        check(f"{major}: the changelog is of this version", f"\nVersion: {VERSION}-1\n" in changes and "warning" not in changes, changes)
    check(f"{major}: the news are in it", f"## {SHORT_VERSION}" in gzip.decompress((tree / doc / "changelog.gz").read_bytes()).decode())
    look_at_copyright(major, (tree / doc / "copyright").read_text())
    look_at_archive(packages, tree, place, folder)
    return tree


def exported(library):
    """Names of the functions that a library has for others."""
    return set(re.findall(r" T (\S+)", run(["nm", "--dynamic", "--defined-only", library]).stdout))


def look_at_copyright(major, text):
    """The file is in Debian's form, and speaks of each linked crate and each licence."""
    paragraphs = [dict(re.findall(r"^([A-Z][\w-]*):[ \n]((?:.|\n(?=[ ]))*)", part, re.M)) for part in text.split("\n\n")]
    of_files = [part for part in paragraphs if "Files" in part]
    bad = [part for part in of_files if not part.get("Copyright", "").strip() or "\n" in part.get("License", "\n")]
    check(f"{major}: copyright has owners and a licence for each part", paragraphs[0].get("Format") == package_copyright.FORMAT and not bad, bad)
    crates = {f"{name}-{version}" for name, version in package_copyright.linked_crates(major)}
    ours = {name for name in crates if name.endswith(f"-{VERSION}") and (ROOT / "crates" / name.rpartition("-")[0]).is_dir()} | {f"colonnade-{VERSION}"}
    told = {match[1] for match in re.finditer(r"^Files: vendor/([^/]+)/\*$", text, re.M)}
    check(f"{major}: copyright speaks of every crate that is linked in", crates - ours == told and len(told) > 30, crates - ours ^ told)
    named = {name for part in of_files for name in package_copyright.names_in(part["License"])}
    texts = {part["License"].split("\n")[0]: part["License"].partition("\n")[2] for part in paragraphs if "License" in part and "Files" not in part}
    check(f"{major}: copyright has the text of every licence, and no other", named == set(texts) and all(len(body) > 60 for body in texts.values()), named ^ set(texts))
    for part in ("zstd/*\nCopyright: Meta Platforms", "rust-", "compiler_builtins"):
        check(f"{major}: copyright speaks of {part.split()[0]}", part in text)


def look_at_archive(packages, tree, place, folder):
    """The tar.gz has the same files, and its own note installs them."""
    with tarfile.open(packages.archive) as archive:
        entries = archive.getmembers()
        archive.extractall(folder / "archive")
    check(f"{packages.major}: the tar.gz has files of root's only", all(entry.uid == 0 and entry.uname == "root" and entry.mode in (0o644, 0o755) for entry in entries))
    top = folder / "archive" / packages.archive.name.removesuffix(".tar.gz")
    note = (top / "INSTALL").read_text()
    commands = "\n".join(line for line in note.splitlines() if line.startswith("       install "))
    server = folder / "server"
    (server / "lib").mkdir(parents=True)
    (server / "share/extension").mkdir(parents=True)
    (server / "pg_config").write_text(f"#!/bin/sh\ncase $1 in --pkglibdir) echo {server}/lib ;; --sharedir) echo {server}/share ;; esac\n")
    (server / "pg_config").chmod(0o755)
    run(["sh", "-e", "-c", commands], cwd=top, environment={"PATH": f"{server}:{os.environ['PATH']}"})
    extension = tree / f"usr/share/postgresql/{packages.major}/extension"
    same = [(server / "lib/colonnade.so").read_bytes() == (tree / place).read_bytes(), paths(server / "share/extension") == paths(extension),
            *((server / "share/extension" / name).read_bytes() == (extension / name).read_bytes() for name in paths(extension))]
    check(f"{packages.major}: the tar.gz installs the files of the package", commands and all(same), note)
    texts = (top / "LICENSE").read_text(), (top / "COPYRIGHT").read_text()
    check(f"{packages.major}: the tar.gz has the licences", "Apache License" in texts[0] and "License: Expat" in texts[1] and "@" not in note)


def look_at_dockerfile(packages):
    """It cannot be built here. What it copies is there, and only that."""
    text = (ROOT / "packaging/Dockerfile").read_text()
    pattern = re.search(r"^COPY (\S+) ", text, re.M)[1].replace("${PG_MAJOR}", packages.major)
    check(f"{packages.major}: the Dockerfile copies the package", list(packages.out.glob(pattern)) == [packages.main], pattern)
    check(f"{packages.major}: the Dockerfile has ten lines", text.count("\n") == 10)


def look_at_source(folder):
    """The zip for PGXN is the tree that git has."""
    made = []
    for number in (1, 2):
        run([ROOT / "scripts/dist.sh"], environment={"OUT": str(folder / str(number)), "TZ": "UTC" if number == 1 else "Asia/Tokyo"})
        made.append(folder / str(number) / f"colonnade-{VERSION}.zip")
    check("the source package is the same each time", made[0].read_bytes() == made[1].read_bytes())
    with zipfile.ZipFile(made[0]) as source:
        names = {name for name in source.namelist() if not name.endswith("/")}
    listed = run(["git", "-C", ROOT, "ls-tree", "-r", "--name-only", "HEAD"]).stdout.splitlines()
    check("the source package is what git has", names == {f"colonnade-{VERSION}/{name}" for name in listed}, len(names))


# -- whether they work ----------------------------------------------------------------------------


def use(major, server, library):
    """A server that has the package: the extension works, and the library is the installed one."""
    server.init()
    server.start()
    server.sql(USE)
    told = server.sql(ASK)
    check(f"{major}: the installed extension works", told == ANSWER, told)
    plan = server.sql("EXPLAIN (COSTS OFF) SELECT count(*), max(v) FROM t WHERE id > 500")
    check(f"{major}: a plan is Colonnade's", "colonnade" in plan.lower(), plan)
    mapped = {line.split(maxsplit=5)[5] for line in Path(f"/proc/{server.postmaster_pid()}/maps").read_text().splitlines() if "colonnade" in line}
    check(f"{major}: the library is that of the package", mapped == {str(library)}, mapped)


class Machine:
    """How dpkg is asked: of this machine (in a namespace of its own), or of a folder with a copy of its data
    base."""

    def __init__(self, root=None):
        self.root = Path(root or "/")
        self.command = ["dpkg"]
        if root is not None:
            shutil.copytree("/var/lib/dpkg", self.root / "var/lib/dpkg", ignore=shutil.ignore_patterns("lock*", "Lock"))
            # Without root's rights files belong to who runs this. Scripts of other packages are not below the
            # folder.
            self.command = [*([] if running_as_root() else ["unshare", "--map-root-user"]), "dpkg", f"--root={root}", "--log=/dev/null", "--no-triggers"]

    def dpkg(self, *words, check=True):
        return run([*self.command, *words], check=check, environment={"DEBIAN_FRONTEND": "noninteractive", "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin"})

    def install(self, deb):
        if self.root == Path("/"):
            run(["apt-get", "-y", "install", deb], environment={"DEBIAN_FRONTEND": "noninteractive"})
        else:
            self.dpkg("--install", deb)

    def owned(self, name):
        """The files, not folders, that dpkg says a package has."""
        found = [self.root / path.lstrip("/") for path in self.dpkg("--listfiles", name).stdout.splitlines()]
        return {path for path in found if path.is_symlink() or not path.is_dir()}

    def named(self):
        """Whatever is named after the extension where packages put something."""
        places = ("usr/lib/postgresql", "usr/share/postgresql", "usr/share/doc", "usr/share/lintian", "var/lib/dpkg/info")
        return {path for place in places for path in (self.root / place).rglob("*colonnade*")}

    def clear(self, name):
        """Takes away what the machine has of the extension."""
        self.dpkg("--purge", f"{name}-dbgsym", name, check=False)
        for path in self.named():
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)


def live(packages, machine):
    """Installs, uses, upgrades and purges the package."""
    major, name, log = packages.major, packages.name, []
    library = machine.root / f"usr/lib/postgresql/{major}/lib/colonnade.so"
    machine.clear(name)
    assert not machine.named(), machine.named()
    stage = None if machine.root == Path("/") else machine.root
    settings = {"shared_preload_libraries": "colonnade"} if stage is None else {}
    server = Server(private_base("packages", temporary=True), stage=stage, settings=settings)
    try:
        with checks.part(f"{major}: the package is installed"):
            machine.install(packages.main)
            machine.dpkg("--install", packages.symbols)
            assert library.exists()
            for deb in (name, f"{name}-dbgsym"):
                assert machine.dpkg("--verify", deb).stdout == "", "a file is not what md5sums says"
            log.append("installed")
        if not log:
            return
        use(major, server, library if server.stage in (None, machine.root) else server.stage / library.relative_to(machine.root))
        if stage is None:
            start = re.search(r"([0-9a-f]+) T _PG_init", run(["nm", "--dynamic", library]).stdout)[1]
            told = run(["addr2line", "--functions", "--exe", library, f"0x{start}"]).stdout
            check(f"{major}: tools find the symbols", re.search(r"_PG_init\n.*crates/postgres/src/lib.rs:\d+", told), told)
        newer = repacked(packages, server.base)
        machine.dpkg("--purge", f"{name}-dbgsym")
        machine.install(newer)
        told = server.sql("SELECT count(*) FROM t"), machine.dpkg("--status", name).stdout
        check(f"{major}: an upgrade leaves the running server at work", told[0] == "30000" and f"Version: {VERSION}-2\n" in told[1], told)
        server.restart()
        check(f"{major}: all is there after a restart", server.sql(ASK) == ANSWER)
        leave(major, name, machine, server)
    finally:
        server.destroy()


def repacked(packages, folder):
    """The same package as a newer revision."""
    run(["dpkg-deb", "-R", packages.main, folder / "newer"])
    control = folder / "newer/DEBIAN/control"
    control.write_text(control.read_text().replace(f"Version: {VERSION}-1\n", f"Version: {VERSION}-2\n"))
    deb = folder / "newer.deb"
    run(["dpkg-deb", "--root-owner-group", "-Znone", "--build", folder / "newer", deb])
    return deb


def leave(major, name, machine, server):
    """Goes the way that README.Debian says, then purges."""
    server.sql("ALTER TABLE t SET ACCESS METHOD heap; DROP EXTENSION colonnade")
    owned = machine.owned(name)
    machine.dpkg("--purge", name)
    left = machine.named() | {path for path in owned if path.exists()}
    check(f"{major}: a purge leaves no file", len(owned) > 5 and not left, left)
    if server.stage in (None, machine.root):
        with checks.part(f"{major}: a server that preloads the purged library says so"):
            server.stop()
            try:
                server.start()
                raise AssertionError("it started")
            except ServerError as error:
                assert "could not access file" in str(error) and "colonnade" in str(error), error
        server.stage = None
        server.settings = {name: value for name, value in server.settings.items() if name not in ("shared_preload_libraries", "colonnade.packing")}
        server.configure()
        server.start()
    told = server.sql("SELECT count(*) FROM t NATURAL JOIN twin")
    check(f"{major}: the rows are in heap tables", told == "30000", told)


# -- where that happens ---------------------------------------------------------------------------


def can_layer():
    """Whether this program may have a mount namespace with layers over the machine's folders."""
    if os.environ.get("NO_NAMESPACE") or not running_as_root():
        return False
    with tempfile.TemporaryDirectory() as layers:
        return run(in_namespace("sh", "-e", "-c", mounts(layers)), check=False).returncode == 0


def in_namespace(*command):
    return ["unshare", "--mount", "--propagation", "private", "--", *map(str, command)]


def mounts(layers):
    """Shell commands that put empty layers over folders of the machine: what is written goes to memory."""
    lines = [f"mount -t tmpfs colonnade-packages {layers}"]
    for name in LAYERED:
        own = f"{layers}/{name}"
        lines.append(f"mkdir -p {own}/upper {own}/work; mount -t overlay -o lowerdir=/{name},upperdir={own}/upper,workdir={own}/work overlay /{name}")
    return "\n".join(lines)


def layered(packages):
    """Runs `live` in a namespace: this program again."""
    with tempfile.TemporaryDirectory() as layers:
        again = f'{mounts(layers)}\nexec "$@"'
        process = subprocess.Popen(in_namespace("sh", "-e", "-c", again, "sh", sys.executable, __file__, "live", packages.major, packages.out), cwd=ROOT)
        try:
            checks.failed += process.wait() != 0
        finally:
            # The other end takes its server down before it ends.
            process.terminate()
            process.wait()


def below_folder(packages):
    base = Path(tempfile.mkdtemp(prefix="colonnade-packages-"))
    try:
        base.chmod(0o755)
        live(packages, Machine(base))
    finally:
        shutil.rmtree(base)


def in_copy(packages, config):
    """Unpacks the package into a copy of the server that a pg_config belongs to."""
    base = private_base("packages-tree", temporary=True)
    try:
        stage = base / "stage"
        run([ROOT / "scripts/stage.sh", PROFILE, stage], environment={"PG_CONFIG": str(config)})
        for path in stage.rglob("colonnade*"):
            path.unlink()
        server = Server(private_base("packages", temporary=True), stage=stage)
        try:
            assert server.has_tree, f"{stage} is no copy of a server"
            libraries, extensions = (Path(server.pg_config(option)) for option in ("--pkglibdir", "--sharedir"))
            tree = packages.unpack(base / "package")
            shutil.copy(tree / f"usr/lib/postgresql/{packages.major}/lib/colonnade.so", libraries)
            for file in (tree / f"usr/share/postgresql/{packages.major}/extension").iterdir():
                shutil.copy(file, extensions / "extension")
            use(packages.major, server, libraries / "colonnade.so")
            checks.show_log(server)
        finally:
            server.destroy()
    finally:
        shutil.rmtree(base)


def install(packages, config):
    """Chooses the way for the server of a pg_config."""
    library = run([config, "--pkglibdir"]).stdout.strip()
    status = run(["dpkg-query", "-W", "-f=${db:Status-Status}", f"postgresql-{packages.major}"], check=False).stdout
    if status != "installed" or library != f"/usr/lib/postgresql/{packages.major}/lib":
        in_copy(packages, config)
        return
    if can_layer():
        layered(packages)
    else:
        print("packages: no mount namespace can be had: dpkg installs below a folder", flush=True)
        below_folder(packages)


def server_of(major):
    """The pg_config that scripts/lib.sh chooses for a major version; the one under test where that is of it.
    """
    if major == str(tested_major()):
        return Path(chosen_pg_config())
    choose = 'unset PG_CONFIG; export PG=$1; . "$2/scripts/lib.sh"; find_postgres >&2; echo "$PG_MAJOR $PG_CONFIG"'
    told = subprocess.check_output(["bash", "-c", choose, "bash", major, ROOT], text=True).strip()
    found, _, config = told.rpartition("\n")[2].partition(" ")
    if found != major:
        raise ServerError(f"no server of PostgreSQL {major} was found")
    return Path(config)


def lint(packages):
    done = run(["lintian", "--allow-root", "--tag-display-limit", "0", "--display-info", "--display-experimental", "--pedantic",
                "--fail-on", "error,warning,info,pedantic", packages.main, packages.symbols], check=False)
    check(f"{packages.major}: lintian finds nothing", done.returncode == 0, done.stdout)
    shown = run(["lintian", "--allow-root", "--show-overrides", "--display-info", "--pedantic", packages.main], check=False).stdout
    overrides = [line for line in (ROOT / "packaging/lintian-overrides").read_text().splitlines() if line and not line.startswith("#")]
    check(f"{packages.major}: every override is needed", shown.count("\nO: ") + shown.startswith("O: ") == len(overrides), shown)


def one(major):
    config = server_of(major)
    with tempfile.TemporaryDirectory() as folder:
        first, second = (Packages(major, Path(folder) / name) for name in ("first", "second"))
        # The caller has built the library for the server under test.
        first.make(build=major != str(tested_major()))
        if checks.failed:
            return
        second.make(build=False, TZ="Asia/Tokyo", LC_ALL="C", USER="somebody", HOSTNAME="elsewhere")
        check(f"{major}: packages of one library are equal to the byte", digests(first.all) == digests(second.all))
        look_inside(first, TARGET / f"built/pg{major}/{PROFILE}/colonnade.so", Path(folder))
        look_at_dockerfile(first)
        if LONG:
            lint(first)
        # The server's user has no way into a temporary folder of root's.
        Path(folder).chmod(0o755)
        install(first, config)


def main():
    end_orderly()
    os.environ.pop("SOURCE_DATE_EPOCH", None)
    if sys.argv[1:2] == ["live"]:
        live(Packages(sys.argv[2], Path(sys.argv[3])), Machine())
        return checks.status()
    with tempfile.TemporaryDirectory() as folder:
        look_at_source(Path(folder))
    for major in os.environ.get("PG_MAJORS", "").split() or [str(tested_major())]:
        one(major)
    return checks.status()


if __name__ == "__main__":
    sys.exit(main())
