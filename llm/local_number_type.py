"""One model is made at a time: torch's default number type is the whole process's meanwhile."""

from __future__ import annotations

import threading

number_type = threading.Lock()
"""Held where a model is made, and where one works that must not see another being made.

While transformers makes a model, torch's default number type is that model's: a second one made
meanwhile gets some of its tensors in the wrong type, and leaves the wrong default behind.

Source: `local_torch_dtype` in transformers/modeling_utils.py.
"""
