#!/usr/bin/env bash
# Fails where the built library uses a symbol that nobody gives it, and lists those.
# Usage: [PG=N] scripts/check_symbols.sh LIBRARY The linker cannot tell: what an extension takes from the
# server stays open until the server loads it. Then a function that PostgreSQL has renamed or removed ends the
# start, or the first statement that comes by. Here each open symbol must be exported by the chosen server's
# `postgres`, or by a library that ours names as needed.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

library=${1:-}
[ -n "$library" ] || die "usage: scripts/check_symbols.sh LIBRARY"
[ -f "$library" ] || die "$library is not there"
command -v nm >/dev/null 2>&1 || die "nm is not there: install binutils"
find_postgres
server=$("$PG_CONFIG" --bindir)/postgres

# Names without the versions that the C library gives them (`malloc@GLIBC_2.2.5`). Not weak ones (w, v):
# nobody need have those.
names() { sed -E 's/@.*//' | sort -u; }
exported() { nm -D --defined-only "$@" 2>/dev/null | awk 'NF == 3 { print $3 }' | names; }

# Of the libraries by the paths that the loader finds.
mapfile -t needed < <(ldd "$library" | awk '$2 == "=>" { print $3 } $1 ~ /^\// { print $1 }')
given=$(exported "$server" "${needed[@]}")
[ "$(wc -l <<<"$given")" -gt 1000 ] || die "nm finds no symbols in $server"
missing=$(nm -D --undefined-only "$library" | awk '$1 == "U" { print $2 }' | names | comm -23 - <(printf '%s\n' "$given"))
if [ -n "$missing" ]; then
    # shellcheck disable=SC2086
    printf '  %s\n' $missing >&2
    die "$(wc -l <<<"$missing") symbols of $(basename "$library") are missing in PostgreSQL $PG_MAJOR ($server)"
fi
