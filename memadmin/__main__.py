"""`memadmin COMMAND`, the same as `python manage.py COMMAND` in a checkout."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec

import memadmin


def main() -> None:
    name = sys.argv[1] if len(sys.argv) > 1 else "help"
    if name == "--version":  # Django would name its own
        return print(memadmin.__version__)
    if find_spec("django") is None:
        sys.exit(
            "memadmin: only the client for agents is installed. pip install 'memadmin[console]' brings the console."
        )
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memadmin.settings")
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import execute_from_command_line

    from memadmin.audit.log import actors

    try:
        # `migrate` may run before the log exists; its actor is the database role.
        with actors.acting(None if name == "migrate" else actors.Actor("command", name)):
            execute_from_command_line(sys.argv)
    except ImproperlyConfigured as problem:
        if "--traceback" in sys.argv:
            raise
        sys.exit(f"memadmin: {str(problem).strip().splitlines()[0]}")
    except Exception as problem:
        from memadmin.web.health import unusable_because

        if "--traceback" in sys.argv or not (reason := unusable_because(problem)):
            raise
        sys.exit(f"memadmin: {reason}")


if __name__ == "__main__":
    main()
