"""Names of the permissions on requests of people and on the data map."""

from __future__ import annotations

VIEW = "erasure.view_request"
HANDLE = "erasure.handle_request"
APPROVE = "erasure.approve_request"

VIEW_MAP = "erasure.view_data_map"
CHANGE_RECORD = "erasure.change_processing_record"
