"""Models of this app, as Django looks for them."""

from __future__ import annotations

from memadmin.erasure.data_map.models import ProcessingRecord

__all__ = ["ProcessingRecord"]
