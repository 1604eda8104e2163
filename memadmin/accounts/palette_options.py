"""Accounts in the command palette."""

from __future__ import annotations

from memadmin.accounts.people.views import ADD
from memadmin.accounts.role_requests.services import ADMINISTER
from memadmin.web.palette import ACTIONS, PaletteAction

ACTIONS.append(PaletteAction("Invite account", "people:new", "user-plus", (ADD, ADMINISTER)))
