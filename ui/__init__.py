"""Everything that imports streamlit and is not a page."""
