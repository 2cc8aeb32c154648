"""Draws the documents of a JSON file: `{key: [markdown, …], …}`, each key in its own container."""

import json
from pathlib import Path

import streamlit as st

for key, parts in json.loads(Path(st.query_params["file"]).read_text()).items():
    with st.container(key=key):
        for part in parts:
            st.markdown(part)
st.text("all drawn")
