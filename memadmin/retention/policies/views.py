"""Pages of retention policies: the list, one policy with its versions, changes and the simulator."""

from __future__ import annotations

from uuid import UUID

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render

from memadmin.retention.models import PolicyVersion, RetentionPolicy
from memadmin.web.pages import operator_page
from memadmin.web.requests import OperatorRequest

VIEW = "retention.view_policy"


@operator_page(VIEW)
def policy_list(request: OperatorRequest) -> HttpResponse:
    return render(request, "retention/policies.html", {"versions": PolicyVersion.objects.in_force()})


@operator_page(VIEW)
def policy(request: OperatorRequest, policy_id: UUID) -> HttpResponse:
    shown = get_object_or_404(RetentionPolicy, pk=policy_id)
    return render(request, "retention/policy.html", {"policy": shown})
