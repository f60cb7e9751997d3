"""The agenda of measurements for a machine with a GPU, as code.

    python bench/gpu worth-it FOLDER          measure one item within its limit of seconds
    python bench/gpu worth-it,explain FOLDER  several, one after the other
    python bench/gpu page FOLDER              write the page again, without measuring

`items` has one file for each question, `runner.py` measures them, `store.py` keeps the results,
and `page` writes FOLDER/README.md. `survey` and `styles` are processes that measure many
configurations one after the other.
"""
