"""What every form of raw edits asks for."""

from __future__ import annotations

WHY = {"why-reason": "correction", "why-explanation": ""}
