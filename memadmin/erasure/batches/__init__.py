"""Erasure of many subjects by one file: upload, preview, one approval, a case of its own for each line."""
