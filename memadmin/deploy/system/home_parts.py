"""Errors of the deployment on the home page of administrators."""

from __future__ import annotations

from django.contrib.auth.models import User
from django.urls import reverse

from memadmin.deploy.system.last_check import last_result
from memadmin.home.parts import HomeParts, Waiting, on_home, time_since


@on_home("Checks of the deployment", "accounts.view_system")
def errors_of_deployment(user: User) -> HomeParts:
    """The errors of the last check, which the page System ran; warnings are risks that may be accepted. One query."""
    result = last_result()
    errors = [finding for finding in result.findings if finding.level == "error"] if result else []
    if not result or not errors:
        return HomeParts()
    entry = Waiting(
        f"{result.errors} in the checks of the deployment",
        reverse("system:system"),
        "View health",
        "alert-octagon",
        facts=errors[0].title,
        age=f"checked {time_since(result.at)}",
        colour="red",
    )
    return HomeParts(waiting=[entry])
