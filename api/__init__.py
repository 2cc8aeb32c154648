"""The engine over HTTP: what OpenAI's clients speak, and a stream of named events to resume.

A layer between the engine and the page: it imports `llm` and Starlette, never Streamlit.
"""
