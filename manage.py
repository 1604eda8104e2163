#!/usr/bin/env python
"""Django's command line for memadmin, run from a checkout."""

from memadmin.__main__ import main

if __name__ == "__main__":
    main()
