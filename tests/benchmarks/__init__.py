"""`make bench`: what the console's pages cost, beside the bare query and beside Django admin on the same tables.

Not tests: no figure fails anything. `python -m tests.benchmarks --help` tells what can be asked; the method, the
machine and the figures are in `docs/performance.md`.
"""
