"""``python -m trainmark``."""

from trainmark.cli.main import main

main()
