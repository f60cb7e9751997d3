"""Export of records to other tools' formats."""
