#!/bin/sh
# The servers that tests talk to, from Debian's packages where apt may install them. Only programs come: the tests start
# servers of their own. Without a server its tests are skipped, and fail under CI=true.
set -eu
export DEBIAN_FRONTEND=noninteractive

wanted=
# One program is server and tools, by the name that it is called.
command -v redis-server >/dev/null || command -v redis-check-rdb >/dev/null || wanted="$wanted redis-tools"
command -v mariadbd >/dev/null || [ -x /usr/sbin/mariadbd ] || wanted="$wanted mariadb-server-core"
# What makes its first tables asks a program that Debian packs with the clients.
command -v my_print_defaults >/dev/null || wanted="$wanted mariadb-client-core"
# Debian's own PostgreSQL beside the embedded one, a pooler, and what moves a server's clock.
ls /usr/lib/postgresql/*/bin/postgres >/dev/null 2>&1 || wanted="$wanted postgresql"
command -v pgbouncer >/dev/null || [ -x /usr/sbin/pgbouncer ] || wanted="$wanted pgbouncer"
ls /usr/lib/*/faketime/libfaketime.so.1 >/dev/null 2>&1 || wanted="$wanted libfaketime"
# What makes keys in the runbook of docs/rotation.md.
command -v openssl >/dev/null || wanted="$wanted openssl"
# What docs/production.md puts before the web server, and how it looks whether it answers.
command -v nginx >/dev/null || [ -x /usr/sbin/nginx ] || wanted="$wanted nginx"
command -v curl >/dev/null || wanted="$wanted curl"
[ -n "$wanted" ] || exit 0

install_with_apt() {
    policy=
    command -v apt-get >/dev/null || return 1
    as_root=
    if [ "$(id -u)" != 0 ]; then
        sudo -n true 2>/dev/null || return 1
        as_root="sudo -n"
    fi
    echo "Installing Debian's$wanted ..."
    $as_root apt-get update -qq && start_nothing &&
        $as_root apt-get install -qq --yes --no-install-recommends $wanted >/dev/null
    installed=$?
    [ -z "$policy" ] || $as_root rm -f "$policy"
    return $installed
}

# By themselves these packages make a cluster in /var/lib/postgresql, and start it, the pooler and nginx. A machine that
# has a policy of its own keeps it, and one that has PostgreSQL keeps what was decided there about new clusters.
start_nothing() {
    case $wanted in *postgresql* | *pgbouncer* | *nginx*) ;; *) return 0 ;; esac
    if [ ! -e /usr/sbin/policy-rc.d ]; then
        policy=/usr/sbin/policy-rc.d
        printf '#!/bin/sh\nexit 101\n' | $as_root tee $policy >/dev/null && $as_root chmod 755 $policy || return 1
    fi
    if [ ! -e /etc/postgresql-common/createcluster.conf ]; then
        $as_root mkdir -p /etc/postgresql-common &&
            echo 'create_main_cluster = false' | $as_root tee /etc/postgresql-common/createcluster.conf >/dev/null
    fi
}

install_with_apt || {
    echo "************************************************************************" >&2
    echo "Not installed:$wanted. THE TESTS ON THEM WILL BE SKIPPED." >&2
    echo "************************************************************************" >&2
    [ "${CI:-}" != true ]
}
