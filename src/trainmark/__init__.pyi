"""What type checkers and editors see of :mod:`trainmark`, whose names come on use."""

from trainmark.api import compare as compare
from trainmark.api import load_records as load_records
from trainmark.api import run as run

__version__: str
