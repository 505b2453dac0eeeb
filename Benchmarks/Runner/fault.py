"""The error that ends a run with a message instead of a trace."""


class Fault(Exception):
    """A problem that the user can fix or must know."""
