"""Models of requests of people about their data."""

from memadmin.erasure.models.access_copies import AccessCopy
from memadmin.erasure.models.requests import RequestNote, SubjectRequest
from memadmin.erasure.models.steps import ErasureStep

__all__ = ["AccessCopy", "ErasureStep", "RequestNote", "SubjectRequest"]
