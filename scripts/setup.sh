#!/usr/bin/env bash
# Installs the system packages that building and testing need and that are not there yet.
# Usage: scripts/setup.sh [lint|server]
# `lint` adds what the checks need, `server` what compiling PostgreSQL itself needs.
# Called by every front-door target first; does nothing, quickly, on a machine that has all of them. Debian's
# PostgreSQL 15 is installed for every version: it brings the user whom servers run as. PG=16, 17 or 18 lays
# the tree of that version besides, see scripts/postgres.sh.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

find_cargo

PG_WANTED=${PG_WANTED:-15}
packages=()

has_package() {
    [ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null || true)" = installed ]
}

want() { # want PACKAGE: queue it unless it is installed
    has_package "$1" || packages+=("$1")
}

if ! command -v dpkg-query >/dev/null 2>&1 || ! command -v apt-get >/dev/null 2>&1; then
    # Not a Debian family system: say what is missing and leave the installing to its owner.
    missing=()
    for tool in cc make python3 mold; do
        command -v "$tool" >/dev/null 2>&1 || missing+=("$tool")
    done
    [ "${#missing[@]}" -eq 0 ] || die "please install: ${missing[*]} (and PostgreSQL 15 with its server headers, libclang)"
    exit 0
fi

command -v cc >/dev/null 2>&1 || want build-essential
command -v mold >/dev/null 2>&1 || want mold
# Debian's own Python loads extensions of SQLite; others often do not.
[ -x /usr/bin/python3 ] || want python3
python3 -c 'import ensurepip, venv' >/dev/null 2>&1 || want python3-venv
command -v runuser >/dev/null 2>&1 || want util-linux
if [ -z "${LIBCLANG_PATH:-}" ] && ! compgen -G '/usr/lib/llvm-*/lib/libclang*.so*' >/dev/null; then
    if apt-cache show libclang-14-dev >/dev/null 2>&1; then want libclang-14-dev; else want libclang-dev; fi
fi
if [ "${1:-}" = lint ]; then command -v shellcheck >/dev/null 2>&1 || want shellcheck; fi
if [ "${1:-}" = server ]; then
    # The sources from 17 on have no generated parsers.
    for tool in flex bison perl pkg-config; do command -v "$tool" >/dev/null 2>&1 || want "$tool"; done
    for package in libicu-dev libreadline-dev zlib1g-dev; do want "$package"; done
fi
if [ -z "${PG_CONFIG:-}" ]; then
    # Either some supported server with its headers is there, or the wanted one is installed.
    found=
    for config in /usr/lib/postgresql/*/bin/pg_config; do
        [ -x "$config" ] || continue
        if [ -f "$("$config" --includedir-server)/postgres.h" ] && [ -x "$("$config" --bindir)/initdb" ]; then
            found=$config
        fi
    done
    if [ -z "$found" ]; then
        want "postgresql-$PG_WANTED"
        want "postgresql-server-dev-$PG_WANTED"
    fi
fi

# Lays the tree of the version that is asked for, where that is not Debian's and no other server is named.
lay_tree() {
    if [ -z "${PG_CONFIG:-}" ] && [ -n "${PG:-}" ] && [ "$PG" != 15 ]; then "$ROOT/scripts/postgres.sh" "$PG" >/dev/null; fi
}

if [ "${#packages[@]}" -eq 0 ]; then
    lay_tree
    exit 0
fi

say "installing system packages: ${packages[*]}"
# The packages would otherwise create and start a server of their own; the private one is enough.
marker=/etc/postgresql-common/createcluster.d/colonnade-setup.conf
if ! has_package postgresql-common; then
    as_root mkdir -p "$(dirname "$marker")"
    printf 'create_main_cluster = false\n' | as_root tee "$marker" >/dev/null
    trap 'as_root rm -f "$marker"' EXIT
fi
as_root apt-get -qq update
as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -y -o Dpkg::Use-Pty=0 --no-install-recommends install "${packages[@]}"
say "system packages are there"
lay_tree
