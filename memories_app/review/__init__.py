"""The review queue: proposals, claims, decisions, approval rules, expiry and the daily digest."""
