"""Legal holds and retention policies in the command palette."""

from __future__ import annotations

from collections.abc import Iterable

from memadmin.retention.models import LegalHold
from memadmin.web.palette import ACTIONS, FINDERS, Option, OptionGroup, PaletteAction, number_in
from memadmin.web.requests import OperatorRequest

VIEW_HOLD, PLACE_HOLD = "retention.view_hold", "retention.place_hold"


def numbered(request: OperatorRequest, text: str) -> Iterable[Option]:
    """The hold with this number. At most one query."""
    number = number_in(text, "H")
    if number and request.user.has_perm(VIEW_HOLD):
        for hold in LegalHold.objects.filter(number=number):
            yield Option(OptionGroup.NUMBERED, str(hold), hold.get_absolute_url(), "gavel", "legal hold")


FINDERS.append(numbered)
ACTIONS += [
    PaletteAction("Place a hold", "retention:holds", "gavel", (VIEW_HOLD, PLACE_HOLD), is_for_subjects=True),
    PaletteAction("New retention policy", "policies:new", "hourglass", ("retention.change_policy",)),
]
