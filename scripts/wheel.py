"""Makes a Python wheel of the extension for SQLite. Called by scripts/wheel.sh with the library and the
folder.

The wheel has the library and a module of three functions, `loadable_path()`, `load(connection)` and
`query(connection, sql)`. It is for any Python 3: the library is loaded by SQLite, not by Python. Its tag says
which C library it needs, which is read from the library's symbols.
"""

import base64
import hashlib
import platform
import re
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NAME = "colonnade_sqlite"
MODULE = '''"""Colonnade for SQLite: compressed column tables in an ordinary database file.

`load(connection)` loads the extension into a connection of the module sqlite3. `query(connection, sql)` runs a
SELECT in the vectorised engine.
"""

from itertools import count
from pathlib import Path

__version__ = "{version}"
_numbers = count(1)


def loadable_path():
    """The path of the extension, as `load_extension` takes it: without the suffix."""
    return str(Path(__file__).parent / "{name}")


def load(connection):
    """Loads the extension into a connection of the module sqlite3."""
    connection.enable_load_extension(True)
    try:
        connection.load_extension(loadable_path())
    finally:
        connection.enable_load_extension(False)


def query(connection, sql, parameters=()):
    """The rows of a SELECT that runs in the vectorised engine. `connection.row_factory` names their columns."""
    name = f"columnar_query_{{next(_numbers)}}"
    text = sql.replace("'", "'" * 2)
    connection.execute(f"CREATE VIRTUAL TABLE temp.{{name}} USING columnar_query('{{text}}')")
    try:
        places = f"({{', '.join('?' * len(parameters))}})" if parameters else ""
        return connection.execute(f"SELECT * FROM temp.{{name}}{{places}}", tuple(parameters)).fetchall()
    finally:
        connection.execute(f"DROP TABLE temp.{{name}}")
'''
METADATA = """Metadata-Version: 2.1
Name: colonnade-sqlite
Version: {version}
Summary: Compressed column tables and vectorised analytics in SQLite
License: Apache-2.0
Requires-Python: >=3.8
Description-Content-Type: text/markdown

{description}
"""


def version():
    """The workspace's version."""
    return re.search(r'^version = "([^"]+)"', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)[1]


def c_library(library):
    """The newest version of the C library that the library asks for."""
    told = subprocess.run(["objdump", "-T", library], check=True, stdout=subprocess.PIPE, text=True).stdout
    return max(tuple(map(int, found)) for found in re.findall(r"GLIBC_(\d+)\.(\d+)", told))


def main():
    library, folder = Path(sys.argv[1]), Path(sys.argv[2])
    number = version()
    major, minor = c_library(library)
    tag = f"py3-none-manylinux_{major}_{minor}_{platform.machine()}"
    info = f"{NAME}-{number}.dist-info"
    files = {
        f"{NAME}/__init__.py": MODULE.format(version=number, name=NAME).encode(),
        f"{NAME}/{NAME}.so": library.read_bytes(),
        f"{info}/METADATA": METADATA.format(version=number, description=(ROOT / "docs/sqlite.md").read_text()).encode(),
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: colonnade\nRoot-Is-Purelib: false\nTag: {tag}\n".encode(),
        f"{info}/LICENSE": (ROOT / "LICENSE").read_bytes(),
    }
    record = []
    for name, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        record.append(f"{name},sha256={digest},{len(data)}")
    files[f"{info}/RECORD"] = "\n".join([*record, f"{info}/RECORD,,", ""]).encode()
    folder.mkdir(parents=True, exist_ok=True)
    wheel = folder / f"{NAME}-{number}-{tag}.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            # The same bytes at each build.
            entry = zipfile.ZipInfo(name, (2026, 1, 1, 0, 0, 0))
            entry.external_attr = 0o644 << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, data)
    print(wheel)


if __name__ == "__main__":
    main()
