"""BY WHOM: one folder a framework, all behind the two protocols of ``base``."""
