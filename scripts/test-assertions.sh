#!/usr/bin/env bash
# Builds PostgreSQL with assertions and runs suites on it: no assertion of the server's may fail.
# Usage: scripts/test-assertions.sh [regress|isolation|changes|postgres]... (default: all)
# The source is found as for `make test-postgres`. Everything lies below target/assertions, or
# target/assertions-N for another major version than 15. The server is built once. The extension is that of
# the chosen server: assertions change the layout of no structure that it reads.
# Only crashes count: an expected output may name what this build has not (lz4 and zstd for TOAST, for one).
set -euo pipefail
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/apt.sh"

"$ROOT/scripts/setup.sh" server
find_postgres
find_source
"$ROOT/scripts/build.sh" dev
home=$TARGET/assertions
if [ "$PG_MAJOR" != 15 ]; then home=$home-$PG_MAJOR; fi
library=$(built_library dev)
# Debian's patch of the source installs libraries below /usr, over the system's own, unless the path has this
# word in it.
prefix=$home/postgresql
mkdir -p "$home/build"
cd "$home/build"
if [ ! -e "$home/installed" ]; then
    # From 17 on the source has no generated scanners and parsers.
    if [ "$PG_MAJOR" -ge 17 ] && ! { command -v flex && command -v bison; } >/dev/null 2>&1; then
        as_root apt-get -qq update
        as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends install flex bison
    fi
    say "building PostgreSQL with assertions (log: $home/build.log)"
    "$SOURCE/configure" --prefix="$prefix" --enable-cassert --enable-debug --with-icu CFLAGS='-O1 -g1' >"$home/build.log" 2>&1
    where=$(printf '%s\n' 'include src/Makefile.global' "show: ; @echo \$(pkglibdir)" | make -s -f - show top_builddir=.)
    case $where in
    "$prefix"/*) ;;
    *) die "this source would install its libraries in $where" ;;
    esac
    make -j "$(nproc)" >>"$home/build.log" 2>&1
    for part in . contrib src/test/regress src/test/isolation; do make -C "$part" install >>"$home/build.log" 2>&1; done
    touch "$home/installed"
fi

cd "$ROOT"
# The results of these runs, too, stay apart from the others.
export PG_CONFIG=$prefix/bin/pg_config CARGO_TARGET_DIR=$home
TARGET=$home
mkdir -p "$(dirname "$(built_library dev)")"
cp "$library" "$(built_library dev)"
"$ROOT/scripts/stage.sh" dev "$home/stage"

suites=("$@")
if [ "${#suites[@]}" -eq 0 ]; then suites=(regress isolation changes postgres); fi
status=0
for suite in "${suites[@]}"; do
    log=$home/$suite.log
    say "$suite with assertions (log: $log)"
    case $suite in
    postgres) python3 "$ROOT/scripts/core_suite.py" "$home/stage" "$SOURCE" regress isolation >"$log" 2>&1 || true ;;
    *) python3 "$ROOT/scripts/run_tests.py" --stage "$home/stage" "$suite" >"$log" 2>&1 || true ;;
    esac
    tail -n 1 "$log"
    if grep -nE 'TRAP:|terminated by signal|PANIC:|the server crashed' "$log"; then
        echo "not ok assertions/$suite"
        status=1
    else
        echo "ok assertions/$suite"
    fi
done
exit "$status"
