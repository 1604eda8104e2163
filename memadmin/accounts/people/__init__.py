"""People: the accounts of the console, their roles and invitations, on pages of their own."""
