"""Approvals: decisions that take a second person, about exactly what a page showed.

An app declares each kind of approval with `declare`. Its services ask for one, and decide about it, with the functions
of `services`; the database believes only the person who acts in the transaction (`sql/approvals.sql`).
"""
