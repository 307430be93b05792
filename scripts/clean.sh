#!/usr/bin/env bash
# Stops this tree's private servers and removes target/.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

for pidfile in "$TARGET"/servers/*/data/postmaster.pid "$TARGET"/pg*/servers/*/data/postmaster.pid; do
    [ -f "$pidfile" ] || continue
    pid=$(head -n 1 "$pidfile")
    # A pid file can outlive its server; only a process that still runs on that directory is stopped.
    if grep -qs -- "$(dirname "$pidfile")" "/proc/$pid/cmdline"; then
        say "stopping the server in $(dirname "$pidfile")"
        kill -INT "$pid" || true
        for _ in $(seq 100); do
            [ -d "/proc/$pid" ] || break
            sleep 0.1
        done
    fi
done
rm -rf -- "$TARGET"
