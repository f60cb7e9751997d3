"""Which hyper-parameters are best: Ray Tune trains every trial, several at a time.

``plan`` turns a request into trials, ``trial`` trains one trial on the machine it was sent to,
``tuning`` runs them with Ray Tune (no other file imports Ray), and ``collect`` writes their
records.
"""
