"""Long work in chunks: one row for each run, a lease with a fencing token, and one page that shows them all.

Upper packages declare a kind of work (`RunKind`), request runs of it and use the lease that the engine gives them.
"""
