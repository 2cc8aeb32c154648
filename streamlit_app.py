"""Steady Chat. Run it with `streamlit run streamlit_app.py`.

Streamlit imports this file once for the `app` below, with our routes beside the page, and runs it
as `__main__` for every visit and click.
"""

from __future__ import annotations

import streamlit as st


def main() -> None:
    """Draw whichever page is open, with the sidebar that all pages share."""
    from llm.errors import NotSignedInError, SettingsError
    from llm.plain_markdown import plain
    from ui.language import say_error
    from ui.style import apply_style

    st.set_page_config(page_title="Steady Chat", page_icon="💬", layout="centered")
    apply_style()
    try:
        draw()
    except SettingsError as error:
        st.error(plain(say_error(error)))
    except NotSignedInError:  # it ended while this run was on its way
        st.rerun()


def draw() -> None:
    """Draw the sidebar and the page.

    Raises:
        SettingsError: the settings, or a file that they name, can't be used.
    """
    from llm.plain_markdown import plain
    from pages import (
        archive_page,
        cache_page,
        chat_page,
        doctor_page,
        metrics_page,
        setup_page,
    )
    from ui import resources
    from ui.at_rest import see
    from ui.cache_pick import keep_cache_in_address
    from ui.conversation_id import arrive, chat_is_wanted, show_in_address
    from ui.language import keep_in_address, say, say_error, words
    from ui.live_answer import (
        let_a_kept_answer_come,
        let_the_chat_be_painted,
        let_the_sidebar_be_painted,
    )
    from ui.owner import needs_sign_in
    from ui.paint_probe import mount_probe, screen, stamps
    from ui.sidebar import chosen_backend, draw_sidebar, set_defaults
    from ui.sign_in import draw_sign_in
    from ui.style import warm_up_browser

    settings = resources.settings()
    signed_out = needs_sign_in()
    if not signed_out:
        here = arrive()
        set_defaults(settings, here)
    chat = st.Page(
        lambda: chat_page.draw(standing, backend, status_place, stamp_place),
        title=say("page-chat"),
        url_path="chat",
        icon=":material/forum:",
        default=True,
    )
    page = st.navigation(
        [
            chat,
            st.Page(
                lambda: archive_page.draw(backend, status_place),
                title=say("page-archive"),
                url_path="conversations",
                icon=":material/inventory_2:",
            ),
            st.Page(
                lambda: cache_page.draw(backend, status_place),
                title=say("page-cache"),
                url_path="cache",
                icon=":material/bolt:",
            ),
            st.Page(
                lambda: metrics_page.draw(backend, status_place),
                title=say("page-metrics"),
                url_path="figures",  # /metrics is Prometheus'
                icon=":material/monitoring:",
            ),
            st.Page(
                lambda: setup_page.draw(settings, backend, status_place),
                title=say("page-setup"),
                url_path="setup",
                icon=":material/tune:",
            ),
            st.Page(
                lambda: doctor_page.draw(settings, backend, status_place),
                title=say("page-doctor"),
                url_path="doctor",
                icon=":material/stethoscope:",
            ),
        ],
        # Named all the same: the addresses are ones to come back to.
        position="hidden" if signed_out else "sidebar",
    )
    if signed_out:
        draw_sign_in(settings)
        return
    show_in_address()
    keep_in_address(settings.language)
    keep_cache_in_address(settings)
    if chat_is_wanted() and page is not chat:
        st.switch_page(chat, query_params=st.query_params.to_dict())
    if settings.cache_pieces_per_s is None:
        let_a_kept_answer_come(resources.chat().job(here))
    seen_before = st.session_state.get("seen")
    seen = st.session_state.seen = see(here)
    # Every part has its place, whichever is drawn first.
    trouble_place = st.empty()
    probe_place, warm_up_place = st.container(key="probe"), st.container(key="warm_up")
    chat_place = st.container() if page is chat else st.empty()
    if seen.trouble is not None:
        trouble_place.warning(plain(say_error(seen.trouble)), icon=":material/save:")
    backend = chosen_backend()
    # What somebody waits for comes first: the sidebar alone is a hundred messages to the browser.
    chat_first = page is chat and (seen_before is None or not seen.same_chat(seen_before))
    if chat_first:
        standing = chat_page.draw_standing(chat_place, backend)
        if standing.to_be_read:
            let_the_chat_be_painted()
    status_place = draw_sidebar(settings, here, seen, backend)
    job = resources.chat().job(here)
    with probe_place:
        mount_probe(active=job is not None, language=words().language)
        stamp_place = stamps()
    if page is not chat:
        screen().look_away()
    warm_up_browser(warm_up_place)
    if page is chat and not chat_first:
        if job is not None:
            let_the_sidebar_be_painted()
        standing = chat_page.draw_standing(chat_place, backend)
    page.run()


if __name__ == "__main__":
    main()
else:
    from streamlit.runtime.pages_manager import PagesManager

    from ui import api_routes
    from ui.metrics_route import metrics_route
    from ui.paint_probe import paint_route
    from ui.resources import lifespan

    # The pages are named by st.navigation alone. Until its first call Streamlit would list the
    # files in pages/ in the sidebar, and run one of them by itself for its address.
    PagesManager.uses_pages_directory = False
    # Streamlit looks for this very assignment in the source.
    app = st.App(
        __file__,
        routes=[paint_route(), metrics_route(), *api_routes.routes()],
        lifespan=lifespan,
    )
