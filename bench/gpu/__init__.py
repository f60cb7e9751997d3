"""What to measure when a GPU is at hand: the agenda as code.

    python bench/gpu worth-it FOLDER          measure one item within its limit of seconds
    python bench/gpu worth-it,explain FOLDER  several, one after the other
    python bench/gpu page FOLDER              write the page again, without measuring

`items` has one file for each question, `runner.py` measures them, `store.py` keeps what was
measured, `page` writes FOLDER/README.md. `survey` and `styles` are processes that measure many
configurations one after the other.
"""
