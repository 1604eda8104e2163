#!/bin/sh
# The servers that the tests of stores talk to, from Debian's packages where apt may install them. These packages hold
# the programs alone: nothing is started on this machine, the tests start their own. Without a server its tests are
# skipped, and fail under CI=true.
set -eu
export DEBIAN_FRONTEND=noninteractive

wanted=
# One program is server and tools, by the name that it is called.
command -v redis-server >/dev/null || command -v redis-check-rdb >/dev/null || wanted="$wanted redis-tools"
command -v mariadbd >/dev/null || [ -x /usr/sbin/mariadbd ] || wanted="$wanted mariadb-server-core"
# What makes its first tables asks a program that Debian packs with the clients.
command -v my_print_defaults >/dev/null || wanted="$wanted mariadb-client-core"
[ -n "$wanted" ] || exit 0

install_with_apt() {
    command -v apt-get >/dev/null || return 1
    as_root=
    if [ "$(id -u)" != 0 ]; then
        sudo -n true 2>/dev/null || return 1
        as_root="sudo -n"
    fi
    echo "Installing Debian's$wanted ..."
    $as_root apt-get update -qq &&
        $as_root apt-get install -qq --yes --no-install-recommends $wanted >/dev/null
}

install_with_apt || {
    echo "************************************************************************" >&2
    echo "Not installed:$wanted. THE TESTS OF THOSE STORES WILL BE SKIPPED." >&2
    echo "************************************************************************" >&2
    [ "${CI:-}" != true ]
}
