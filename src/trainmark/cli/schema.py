"""``trainmark schema``: the JSON Schema of a record."""

from __future__ import annotations

import click

from trainmark.cli.output import json_option, print_json

EPILOG = """\b
Examples:
  trainmark schema > record.schema.json
"""


@click.command("schema", epilog=EPILOG)
@json_option
def command(as_json: bool) -> None:  # noqa: ARG001  (the schema is JSON in any case)
    """Print the JSON Schema of a record."""
    from trainmark.record.codec import schema

    print_json(schema())
