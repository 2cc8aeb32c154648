#!/bin/sh
# Secrets come as files, which `docker inspect` doesn't show; the settings read the environment.
set -eu
if [ -n "${VLLM_API_KEY_FILE:-}" ]; then
    STEADY_CHAT_VLLM_API_KEY=$(cat "$VLLM_API_KEY_FILE")
    export STEADY_CHAT_VLLM_API_KEY
    unset VLLM_API_KEY_FILE
fi
if [ -n "${POSTGRES_PASSWORD_FILE:-}" ]; then
    # PostgreSQL's own variable: in the address a password would need its special characters spelled.
    PGPASSWORD=$(cat "$POSTGRES_PASSWORD_FILE")
    export PGPASSWORD
    unset POSTGRES_PASSWORD_FILE
fi
# In place of the shell: it is the app that must hear that it should stop.
exec streamlit run streamlit_app.py "$@"
