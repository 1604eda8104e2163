"""Requests of people about their data: erasure, access, restriction of learning."""
