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

# Chooses the server: PG_CONFIG where the caller named one, else the tree of the major version PG (16 to 18,
# see scripts/postgres.sh), else the distribution's server. Sets PG_CONFIG, PG_MAJOR and what cargo needs to
# bind to that server. Sets BY_MAJOR, the folder of stages, servers and results of this version: target/
# itself for 15.
find_postgres() {
    if [ -z "${PG_CONFIG:-}" ]; then
        local candidate candidates=(/usr/bin/pg_config "$(command -v pg_config 2>/dev/null || true)" /usr/lib/postgresql/*/bin/pg_config)
        case ${PG:-} in
        '') ;;
        # By the name that is the default, if it can be: cargo builds again where the name changes.
        15) if ! pg_config --version 2>/dev/null | grep -q ' 15\.'; then candidates=(/usr/lib/postgresql/15/bin/pg_config); fi ;;
        16 | 17 | 18) candidates=("$("$ROOT/scripts/postgres.sh" "$PG")") || exit 1 ;;
        *) die "PG=$PG: there is 15, 16, 17 and 18 to choose from" ;;
        esac
        for candidate in "${candidates[@]}"; do
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
    # shellcheck disable=SC2034  # read by the scripts that source this file
    if [ "$PG_MAJOR" = 15 ]; then BY_MAJOR=$TARGET; else BY_MAJOR=$TARGET/pg$PG_MAJOR; fi
    export PG_CONFIG PG_MAJOR
    export PGRX_PG_CONFIG_PATH=$PG_CONFIG
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

# The library that scripts/build.sh made for the chosen server: built_library dev|release
built_library() {
    case $1 in
    dev | release) echo "$TARGET/built/pg$PG_MAJOR/$1/colonnade.so" ;;
    *) die "no profile is called $1: dev or release" ;;
    esac
}

# The time that files of packages have: that of the last commit. In an unpacked source package META.json has
# it.
source_date() {
    if [ -n "${SOURCE_DATE_EPOCH:-}" ]; then
        echo "$SOURCE_DATE_EPOCH"
    else
        git -C "$ROOT" log -1 --format=%ct 2>/dev/null || stat -c %Y "$ROOT/META.json"
    fi
}

# The flags that build the extension for the chosen server, in BUILD_FLAGS.
# shellcheck disable=SC2034  # read by the scripts that source this file
build_flags() {
    BUILD_FLAGS=(-p colonnade --no-default-features --features "pg$PG_MAJOR")
    # 15 is the default feature: without flags a plain `cargo build -p colonnade` shares the result.
    if [ "$PG_MAJOR" = 15 ]; then BUILD_FLAGS=(-p colonnade); fi
}
