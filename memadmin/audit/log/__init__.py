"""Events: writing them in the transaction of a change, their types, actors, details and labels."""
