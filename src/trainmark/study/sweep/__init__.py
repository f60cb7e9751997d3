"""Which hyper-parameters are best: every combination of a grid is one run, several side by side.

``plan`` says what is to be trained, ``trial`` trains one combination where it is told to, ``turns`` hands them out and
keeps the records, and ``cluster`` is the one place that knows Ray.
"""
