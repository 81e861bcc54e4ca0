"""Kills a server that writes and looks at what is left: every acknowledged change once, every other one wholly or not at
all. `python -m crash --help` runs many rounds; `test_crash.py` runs a few."""
