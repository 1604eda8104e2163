"""Screenshots of pages of a running server, wide and narrow, light and dark: `python -m tests.browser.look /sessions/`.

The server is the one of `make demo`, unless `--at` names another; `--as` is a role's login there.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from playwright.sync_api import sync_playwright

from tests.browser import looking


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("paths", nargs="+", metavar="PATH", help="for example / /sessions/ '/sessions/?findings=yes'")
    port = os.environ.get("MEMADMIN_PORT", "8000")
    parser.add_argument("--at", default=f"http://127.0.0.1:{port}", metavar="ADDRESS")
    parser.add_argument("--as", dest="login", default="support", metavar="LOGIN")
    parser.add_argument("--password", default=os.environ.get("MEMADMIN_DEMO_PASSWORD", "memadmin-demo"))
    parser.add_argument("--out", type=Path, default=Path("test-results/look"), metavar="FOLDER")
    wanted = parser.parse_args()
    with sync_playwright() as playwright:
        page = playwright.chromium.launch(executable_path=looking.SYSTEM_CHROMIUM).new_page(base_url=wanted.at)
        page.goto("/accounts/login/")
        page.get_by_label("User name").fill(wanted.login)
        page.get_by_label("Password").fill(wanted.password)
        page.get_by_role("button", name="Sign in").click()
        page.locator("#nav, [role=alert]").wait_for(state="attached")
        if page.get_by_role("alert").count():
            raise SystemExit(f"{wanted.login} cannot sign in at {wanted.at}: {page.get_by_role('alert').inner_text()}")
        for path in wanted.paths:
            for view in looking.each_view(page, path):
                print(looking.photograph(page, view, looking.name_of(path), wanted.out))


if __name__ == "__main__":
    main()
