"""Benchmarks: what the screen, the server and the model cost. `python -m benchmarks --help`.

Figures, not tests: they hang on the machine. docs/decisions.md quotes them with the machine.
"""
