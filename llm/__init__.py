"""Steady Chat's engine: backends, jobs and what turns a token stream into calm frames.

It knows no user interface and imports nothing heavy until a model is asked for.
"""
