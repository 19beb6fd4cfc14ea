"""What a probe is: a table of cases, the PTX of a case, and how a case is measured."""
import itertools
from typing import Callable, NamedTuple


class Probe(NamedTuple):
    name: str
    seconds: float     # planned on a GPU, with the start of its process
    unit: str
    cases: list        # dicts of parameters, each a line of the result
    text: Callable     # text(**case): PTX with the entry "k"
    measure: Callable  # measure(gpu, **case): dict with "value"


def product(**lists):
    """Every combination of the parameters' values, as cases."""
    return [dict(zip(lists, values)) for values in itertools.product(*lists.values())]
