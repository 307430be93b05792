# shellcheck shell=bash
# What every script here shares: where the repository is, how to speak, which server it builds for.
# Sourced, never run. Callers have `set -euo pipefail` on.

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
TARGET=${CARGO_TARGET_DIR:-$ROOT/target}
export ROOT TARGET

say() { printf '==> %s\n' "$*"; }
warn() { printf 'warning: %s\n' "$*" >&2; }
die() {
    printf 'error: %s\n' "$*" >&2
    exit 1
}

# Runs a command as root: directly, or through sudo.
as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    elif command -v sudo >/dev/null 2>&1; then
        sudo "$@"
    else
        die "this needs root and sudo is not installed: $*"
    fi
}

# rustup installs below the home directory and a fresh shell may not have it on its path yet.
find_cargo() {
    if ! command -v cargo >/dev/null 2>&1 && [ -x "${CARGO_HOME:-$HOME/.cargo}/bin/cargo" ]; then
        PATH="${CARGO_HOME:-$HOME/.cargo}/bin:$PATH"
        export PATH
    fi
    command -v cargo >/dev/null 2>&1 ||
        die "cargo not found: install Rust 1.95 or newer with rustup (https://rustup.rs) first"
}

# Sets PG_CONFIG (kept if the caller named one), PG_MAJOR and what cargo needs to bind to that server.
find_postgres() {
    if [ -z "${PG_CONFIG:-}" ]; then
        local candidate
        for candidate in /usr/bin/pg_config "$(command -v pg_config 2>/dev/null || true)" \
            /usr/lib/postgresql/*/bin/pg_config; do
            if [ -n "$candidate" ] && [ -x "$candidate" ]; then
                PG_CONFIG=$candidate
                break
            fi
        done
    fi
    [ -n "${PG_CONFIG:-}" ] || die "pg_config not found: run 'make setup' or name one with PG_CONFIG=..."
    [ -x "$PG_CONFIG" ] || die "PG_CONFIG=$PG_CONFIG is not an executable file"
    PG_MAJOR=$("$PG_CONFIG" --version | sed -E 's/^PostgreSQL ([0-9]+).*/\1/')
    case $PG_MAJOR in
    15 | 16 | 17 | 18) ;;
    *) die "$PG_CONFIG is PostgreSQL $PG_MAJOR; Colonnade builds against 15 to 18" ;;
    esac
    export PG_CONFIG PG_MAJOR
    export PGRX_PG_CONFIG_PATH=$PG_CONFIG
}

# Sets SOURCE to an unpacked source tree of the chosen server (kept if the caller named one): the
# distribution's source package of the installed version, or the newest of the same major version that can be
# had, fetched into target/.
find_source() {
    [ -z "${SOURCE:-}" ] || return 0
    local version major package installed candidate found
    version=$("$PG_CONFIG" --version | sed -E 's/^PostgreSQL ([0-9.]+).*/\1/')
    major=${version%%.*}
    package=postgresql-$major
    mkdir -p "$TARGET/postgresql-source"
    found=$(newest_source "$package" "$version")
    if [ -z "$found" ]; then
        say "fetching the source of PostgreSQL $version"
        list_source_packages
        # A mirror may list a version that it no longer holds: the installed one if it can be had, else the
        # newest.
        installed=$(dpkg-query -W -f '${source:Version}' "$package" 2>/dev/null || true)
        for candidate in $installed $(apt_sources apt-cache showsrc "$package" | sed -n 's/^Version: //p' | sort -Vru); do
            if (cd "$TARGET/postgresql-source" && apt_sources apt-get source --only-source "$package=$candidate"); then break; fi
        done
        found=$(newest_source "$package" "$version")
    fi
    [ -n "$found" ] || die "no source package of PostgreSQL $major could be fetched: set SOURCE to an unpacked source tree of PostgreSQL $version"
    SOURCE=$found
    if [ "$SOURCE" != "$TARGET/postgresql-source/$package-$version" ]; then say "the server is $version, the suites are of $(basename "$SOURCE")"; fi
}

# The unpacked source of the version, else the newest of the package.
newest_source() {
    local exact=$TARGET/postgresql-source/$1-$2
    if [ -d "$exact" ]; then echo "$exact"; else find "$TARGET/postgresql-source" -mindepth 1 -maxdepth 1 -type d -name "$1-*" | sort -V | tail -1; fi
}

# Runs apt with lists of its own, of sources: few machines have deb-src lines, and theirs are not ours to
# change.
apt_sources() {
    local lists=$TARGET/postgresql-source/apt
    "$1" -o Dir::Etc::sourcelist="$lists/sources.list" -o Dir::Etc::sourceparts="$lists/parts" -o Dir::State::lists="$lists/lists" "${@:2}"
}

# The distribution's own repositories (other vendors seldom have sources), with their sources instead of
# packages.
list_source_packages() {
    local lists=$TARGET/postgresql-source/apt file
    mkdir -p "$lists/parts" "$lists/lists/partial"
    : >"$lists/sources.list"
    if [ -f /etc/apt/sources.list ]; then sed -nE 's/^deb (.*debian.*)/deb-src \1/p' /etc/apt/sources.list >"$lists/sources.list"; fi
    for file in /etc/apt/sources.list.d/*; do
        case $file in
        *.sources) if grep -qE '^URIs:.*debian' "$file"; then sed -E 's/^Types:.*/Types: deb-src/' "$file" >"$lists/parts/$(basename "$file")"; fi ;;
        *.list) sed -nE 's/^deb (.*debian.*)/deb-src \1/p' "$file" >>"$lists/sources.list" ;;
        esac
    done
    apt_sources apt-get update
}

# bindgen loads libclang at build time; Debian keeps it where the dynamic linker does not look.
find_libclang() {
    [ -z "${LIBCLANG_PATH:-}" ] || return 0
    local dir tool
    for tool in llvm-config-14 llvm-config; do
        if command -v "$tool" >/dev/null 2>&1; then
            dir=$("$tool" --libdir)
            if compgen -G "$dir/libclang*.so*" >/dev/null; then
                export LIBCLANG_PATH=$dir
                return 0
            fi
        fi
    done
    for dir in /usr/lib/llvm-14/lib /usr/lib/llvm-*/lib /usr/lib64 /usr/lib/*-linux-gnu; do
        if compgen -G "$dir/libclang*.so*" >/dev/null; then
            export LIBCLANG_PATH=$dir
            return 0
        fi
    done
    die "libclang not found: run 'make setup' or set LIBCLANG_PATH"
}

# The flags that build the extension for the chosen server, in BUILD_FLAGS.
# shellcheck disable=SC2034  # read by the scripts that source this file
build_flags() {
    BUILD_FLAGS=(-p colonnade --no-default-features --features "pg$PG_MAJOR")
    # 15 is the default feature: without flags a plain `cargo build -p colonnade` shares the result.
    if [ "$PG_MAJOR" = 15 ]; then BUILD_FLAGS=(-p colonnade); fi
}
