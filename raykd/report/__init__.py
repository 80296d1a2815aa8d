"""The results of a sweep as terminal table, Markdown, CSV, Parquet and one HTML page; `--where` and `--best`.

Everything here returns strings, bytes or rich renderables; `cli/` prints them.
"""
