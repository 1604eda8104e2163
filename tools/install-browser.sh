#!/bin/sh
# A Chromium for the browser tests: Debian's own where apt may install it, else the one of Playwright.
# Without either those tests are skipped, and fail under CI=true.
# Debian has it without windows too, which takes half the time; a chromium that is there does as well.
set -eu
cd "$(dirname "$0")/.."
export DEBIAN_FRONTEND=noninteractive
command -v chromium-headless-shell >/dev/null && exit 0

install_with_apt() {
    command -v apt-get >/dev/null || return 1
    as_root=
    if [ "$(id -u)" != 0 ]; then
        sudo -n true 2>/dev/null || return 1
        as_root="sudo -n"
    fi
    echo "Installing Debian's chromium-headless-shell ..."
    $as_root apt-get update -qq -o Acquire::Retries=0 -o Acquire::http::Timeout=10 &&
        $as_root apt-get install -qq --yes --no-install-recommends chromium-headless-shell fonts-dejavu-core >/dev/null
}

install_with_apt || command -v chromium >/dev/null || .venv/bin/playwright install chromium || {
    echo "************************************************************************" >&2
    echo "No Chromium could be installed: THE BROWSER TESTS WILL BE SKIPPED." >&2
    echo "Install the package chromium-headless-shell, or let Playwright reach its download host." >&2
    echo "************************************************************************" >&2
    [ "${CI:-}" != true ]
}
