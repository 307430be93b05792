# shellcheck shell=bash
# Debian packages that the machine's own package lists do not have: sources, and files of other releases.
# Sourced after lib.sh by the scripts that fetch them; nothing here is installed.
#
# The lists are private: they lie in a folder of ours, and the machine's own are neither read nor changed.
# They name the Debian mirror that the machine uses already. apt checks every list against Debian's keys,
# which a Debian 12 machine has for later releases, too, and every file against its list.

# The mirrors of Debian and of its security updates (not those of other vendors) that this machine uses.
debian_mirrors() {
    {
        if [ -f /etc/apt/sources.list ]; then sed -nE 's/^deb +(\[[^]]*\] +)?([^ ]+).*/\2/p' /etc/apt/sources.list; fi
        find /etc/apt/sources.list.d -name '*.list' -exec sed -nE 's/^deb +(\[[^]]*\] +)?([^ ]+).*/\2/p' {} +
        find /etc/apt/sources.list.d -name '*.sources' -exec sed -nE 's/^URIs: *//p' {} + | tr ' ' '\n'
    } 2>/dev/null | grep -E '/debian(-security)?/?$' | sort -u
}

# Makes private lists in a folder: private_lists FOLDER deb|deb-src SUITE...
# A mirror need not have every suite: those that it has count.
private_lists() {
    local folder=$1 kind=$2 mirror suite key=/usr/share/keyrings/debian-archive-keyring.gpg signed=
    shift 2
    command -v apt-get >/dev/null 2>&1 || die "apt-get is not there: this is for Debian and its relatives"
    [ -n "$(debian_mirrors)" ] || die "no Debian mirror is named in /etc/apt: another vendor's system?"
    if [ -f "$key" ]; then signed="[signed-by=$key] "; fi
    mkdir -p "$folder/parts" "$folder/lists/partial" "$folder/cache/archives/partial"
    : >"$folder/sources.list"
    for mirror in $(debian_mirrors); do
        for suite in "$@"; do
            # Security updates have mirrors of their own, and suites whose names say so.
            case $mirror,$suite in
            *-security*,*-security) ;;
            *-security*,* | *,*-security) continue ;;
            esac
            printf '%s %s%s %s main\n' "$kind" "$signed" "$mirror" "$suite" >>"$folder/sources.list"
        done
    done
    with_lists "$folder" apt-get -q update || warn "not every package list could be had"
}

# Runs an apt program with private lists: with_lists FOLDER PROGRAM ARGUMENT...
with_lists() {
    local folder=$1 options
    options=(-o "Dir::Etc::sourcelist=$folder/sources.list" -o "Dir::Etc::sourceparts=$folder/parts"
        -o "Dir::State::lists=$folder/lists" -o "Dir::Cache=$folder/cache" -o Acquire::Languages=none)
    # As root apt would fetch as another user, who cannot enter a home directory.
    if [ "$(id -u)" -eq 0 ]; then options+=(-o APT::Sandbox::User=root); fi
    "$2" "${options[@]}" "${@:3}"
}

# The versions of a package in private lists, newest first: listed_versions FOLDER show|showsrc PACKAGE
listed_versions() {
    with_lists "$1" apt-cache "$2" "$3" 2>/dev/null | sed -n 's/^Version: //p' | sort -Vru
}

# Sets SOURCE to an unpacked source tree of the chosen server (kept if the caller named one). It is the source
# package of the very version, or the newest of the same major version that can be had, fetched into target/.
find_source() {
    [ -z "${SOURCE:-}" ] || return 0
    local version package home installed candidate suites
    version=$("$PG_CONFIG" --version | sed -E 's/^PostgreSQL ([0-9.]+).*/\1/')
    package=postgresql-$PG_MAJOR
    home=$TARGET/postgresql-source
    mkdir -p "$home"
    SOURCE=$(newest_source "$package" "$version")
    if [ -z "$SOURCE" ]; then
        # Debian 12 has 15, Debian 13 has 17, what comes after has 18; no release has 16.
        case $PG_MAJOR in
        15) suites=(bookworm bookworm-security bookworm-updates oldstable) ;;
        17) suites=(trixie trixie-security trixie-updates stable) ;;
        18) suites=(forky testing unstable) ;;
        *) die "Debian has no source of PostgreSQL $PG_MAJOR: set SOURCE to an unpacked source tree of it" ;;
        esac
        say "fetching the source of PostgreSQL $version"
        private_lists "$home/apt" deb-src "${suites[@]}"
        # A mirror may list a version that it no longer holds: the installed one if it can be had, else the
        # newest.
        installed=$(dpkg-query -W -f '${source:Version}' "$package" 2>/dev/null || true)
        for candidate in $installed $(listed_versions "$home/apt" showsrc "$package"); do
            if (cd "$home" && with_lists "$home/apt" apt-get source --only-source "$package=$candidate"); then break; fi
        done
        SOURCE=$(newest_source "$package" "$version")
    fi
    [ -n "$SOURCE" ] || die "no source package of PostgreSQL $PG_MAJOR could be fetched: set SOURCE to an unpacked source tree of PostgreSQL $version"
    if [ "$SOURCE" != "$home/$package-$version" ]; then say "the server is $version, the suites are of $(basename "$SOURCE")"; fi
}

# The unpacked source of the version, else the newest of the package.
newest_source() {
    local exact=$TARGET/postgresql-source/$1-$2
    if [ -d "$exact" ]; then echo "$exact"; else find "$TARGET/postgresql-source" -mindepth 1 -maxdepth 1 -type d -name "$1-*" | sort -V | tail -1; fi
}
