"""STUDIES: questions that planned runs answer."""
