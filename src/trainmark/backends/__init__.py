"""The backends: one folder per framework, behind the two protocols of ``base``."""
