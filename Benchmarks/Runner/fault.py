"""What ends the run with a message instead of a trace."""


class Fault(Exception):
    """Something that whoever started the run can mend, or has to know."""
