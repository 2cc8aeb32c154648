"""The tests."""

import os

# As the local backend does for the app, before any test imports torch: see llm/local_backend.py.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
os.environ.setdefault("KMP_BLOCKTIME", "0")
