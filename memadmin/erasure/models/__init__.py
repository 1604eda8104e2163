"""Models of requests of people about their data."""

from memadmin.erasure.data_map.models import ProcessingRecord
from memadmin.erasure.models.access_copies import AccessCopy
from memadmin.erasure.models.batches import BatchLine, RequestBatch
from memadmin.erasure.models.requests import RequestNote, SubjectRequest
from memadmin.erasure.models.steps import ErasureStep
from memadmin.erasure.models.suppressions import SuppressionEntry

__all__ = [
    "AccessCopy",
    "BatchLine",
    "ErasureStep",
    "ProcessingRecord",
    "RequestBatch",
    "RequestNote",
    "SubjectRequest",
    "SuppressionEntry",
]
