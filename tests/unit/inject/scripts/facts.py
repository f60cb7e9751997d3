"""Prints what a program can learn about functions, one line of JSON each: ``module:name`` words."""

import importlib
import inspect
import json
import pickle
import re
import sys
from typing import Any


def attempt(call: Any) -> str:
    """Return the result as text, or the error."""
    try:
        return re.sub(r" at 0x\w+", "", str(call()))
    except Exception as error:  # noqa: BLE001
        return re.sub(r" at 0x\w+", "", f"{type(error).__name__}: {error}")


def facts(owner: Any, name: str) -> dict[str, str]:
    """Return what is known of an attribute."""
    thing = getattr(owner, name)
    found = {
        each: attempt(lambda each=each: getattr(thing, each))
        for each in (
            "__name__",
            "__qualname__",
            "__module__",
            "__doc__",
            "__annotations__",
            "__defaults__",
            "__kwdefaults__",
        )
    }
    return found | {
        "signature": attempt(lambda: inspect.signature(thing)),
        "pickle": attempt(lambda: pickle.loads(pickle.dumps(thing)) is thing),
        "source": attempt(lambda: hash(inspect.getsource(thing)) and inspect.getsource(thing)),
        "same": str(getattr(owner, name) is thing),
        "routine": str(inspect.isroutine(thing)),
    }


for frameworks in sys.argv[1].split(","):
    importlib.import_module(frameworks)
if "trainmark_inject" in sys.modules:
    patch = sys.modules["trainmark_inject.patch"]
    print(json.dumps([list(each) for each in patch.PATCHES]), file=sys.stderr)
for word in sys.argv[2:]:
    module, _, path = word.partition(":")
    owner = importlib.import_module(module)
    *outer, name = path.split(".")
    for each in outer:
        owner = getattr(owner, each)
    print(json.dumps({word: facts(owner, name)}))
