"""The page System: state of the parts of the system, and the findings of the checks of the deployment."""
