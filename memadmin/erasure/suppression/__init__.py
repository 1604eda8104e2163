"""Suppression ledger: which erasures a restored database has to repeat. Kept outside of the database."""
