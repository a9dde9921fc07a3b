"""fairtrial and other tools on one model server: `make bench-rivals` writes the page docs/rivals.md.

Each tool is one file that says how it is installed, started, resumed and read; the experiments know no tool by name.
"""
