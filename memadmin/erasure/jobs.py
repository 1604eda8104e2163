"""Background jobs of requests of people."""

from memadmin.erasure.access_copy import jobs as access_copy_jobs

__all__ = ["access_copy_jobs"]
