"""WHAT IS ASKED: questions that planned runs answer."""
