#!/usr/bin/env bash
# Makes a private installation of the built extension, for servers that tests and benchmarks start.
# Usage: scripts/stage.sh dev|release [FOLDER]
# Prints the folder: target/stage/PROFILE for 15, target/pgN/stage/PROFILE for later major versions.
#
# Debian's servers look for extensions below another root, too (`extension_destdir`, a patch of Debian's):
# there the stage has our files only. Other servers look into their own tree only. There the stage is a copy
# of that tree in FOLDER/postgresql/N, with ours installed, and harness/server.py runs the programs of the
# copy. The copy has hard links where the file system allows them, so that it takes no space and no time.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

profile=${1:-dev}
find_postgres
stage=${2:-$BY_MAJOR/stage/$profile}
bindir=$("$PG_CONFIG" --bindir)

# Copies files and folders into a folder: links, or copies where links cannot be.
copied() {
    if ! cp -RPlp "$@" 2>/dev/null; then cp -RPp "$@"; fi
}

umask 022
# Asks for the setting's value, without a cluster: a server that has no such setting fails. (--describe-config
# leaves this one out.)
if "$bindir/postgres" -C extension_destdir -D / -c config_file=/dev/null >/dev/null 2>&1; then
    # What an earlier server left here would be taken for the one to run.
    rm -rf -- "$stage/postgresql"
    DESTDIR=$stage "$ROOT/scripts/install.sh" "$profile"
else
    prefix=$(dirname "$bindir")
    for option in --pkglibdir --sharedir; do
        case $("$PG_CONFIG" "$option") in
        "$prefix"/*) ;;
        *) prefix=/ ;;
        esac
    done
    case $prefix in
    / | /usr | /usr/local)
        die "the server of $PG_CONFIG shares its folders with others and has no extension_destdir: tests need another (PG=$PG_MAJOR)"
        ;;
    esac
    tree=$stage/postgresql/$PG_MAJOR
    # The copy is made anew where the server is another one: its path, and the time and number of its file.
    stamp="$prefix $(stat -c '%i %Y' "$bindir/postgres")"
    if [ ! -f "$stage/server" ] || [ "$(<"$stage/server")" != "$stamp" ]; then
        rm -rf -- "$stage"
        mkdir -p "$tree"
        copied "$prefix/." "$tree/"
        # Libraries that the programs look for beside their tree (see scripts/postgres.sh).
        for libraries in "$prefix"/../../*.libs; do
            if [ -d "$libraries" ]; then copied "$libraries" "$stage/"; fi
        done
        printf '%s\n' "$stamp" >"$stage/server"
    fi
    PG_CONFIG=$tree/bin/pg_config "$ROOT/scripts/install.sh" "$profile" >&2
fi
echo "$stage"
