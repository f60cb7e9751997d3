"""How long does a page about many records take, and how large is it?

    python bench/report.py RECORD... [--records 200]

It copies the given records, with other ids and rounds, until there are enough; then it runs
`trainmark report` three times, each in a separate process, and prints the seconds of each and the
size of the page.
"""

from __future__ import annotations

import argparse
import itertools
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import msgspec

from trainmark.record.store import Store, load


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("paths", nargs="+", type=Path)
    parser.add_argument("--records", type=int, default=200)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        store = Store(Path(place) / "records")
        page = Path(place) / "page.html"
        for number, record in enumerate(
            itertools.islice(itertools.cycle(load(options.paths)), options.records)
        ):
            store.write(msgspec.structs.replace(record, id=f"{record.id}-{number}", round=number))
        command = [sys.executable, "-m", "trainmark", "report", str(store.folder), "-o", str(page)]
        for _ in range(3):
            start = time.perf_counter()
            subprocess.run(command, check=True, capture_output=True)
            print(
                f"{options.records} records: {time.perf_counter() - start:.2f} s, "
                f"{page.stat().st_size / 1e6:.2f} MB"
            )


if __name__ == "__main__":
    main()
