"""The little that Streamlit's theme can't say."""

from __future__ import annotations

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

# No "<" before a letter in it: the whole sheet would be taken for dangerous and left out.
_CSS = """
<style>
/* "Press Enter to apply" and the like exist in English only; every field applies on leaving it. */
[data-testid="InputInstructions"] { display: none; }
[data-testid="stMainBlockContainer"] { padding-top: 3.5rem; }
/* Drawn out of sight so that the browser has its highlighter and formula code ready. */
.st-key-warm_up { position: absolute; width: 1px; height: 1px; overflow: hidden; }
.st-key-warm_up, .st-key-warm_up * { visibility: hidden !important; }
.st-key-probe, .st-key-follower, .st-key-model_in_sight, .st-key-tabs, .st-key-list_keys {
  position: absolute; height: 0; overflow: hidden; }
/* Blocks of one answer stand in elements of their own; their margins must not add up. */
[class*="st-key-answer-"] blockquote { margin-top: 0; margin-bottom: 1rem; }
[class*="st-key-answer-"] hr { margin: 1rem 0 2rem; }
/* Blocks out of sight cost a frame or a click nothing: neither style nor layout. They keep their
   size, and are found, read out and copied as ever. */
[class*="st-key-answer-"] > [data-testid="stLayoutWrapper"]:not(:last-child),
[data-testid="stExpanderDetails"] > * > [data-testid="stLayoutWrapper"]:not(:last-child) {
  content-visibility: auto; contain-intrinsic-size: auto 400px;
}
/* The list of conversations: a title and its menu beside each other, everything else below. It
   scrolls by itself, so that what stands under it is in reach however long it is. It ends in the
   middle of a row, and fades there as long as there is more. */
.st-key-conversations { display: grid; grid-template-columns: minmax(0, 1fr) auto; align-items: center;
  max-height: calc(2.625rem + round(down, max(6.5rem, 100vh - 34rem - var(--steady-asked)), 2rem));
  overflow-y: auto; scrollbar-width: thin;
  mask-image: linear-gradient(to top, transparent, #000 var(--steady-more));
  animation: steady-more linear; animation-timeline: scroll(self); }
@property --steady-more { syntax: "\\3c length>"; inherits: false; initial-value: 0px; }
@property --steady-asked { syntax: "\\3c length>"; inherits: true; initial-value: 0px; }
@keyframes steady-more { from, 95% { --steady-more: 2rem; } to { --steady-more: 0px; } }
/* What a model would take must be seen with its buttons: the list gives way to it. */
[data-testid="stSidebar"]:has(.st-key-model_leave) { --steady-asked: 13rem; }
.st-key-conversations > * { grid-column: 1 / -1; width: auto !important; min-width: 0; }
.st-key-conversations > [class*="st-key-open-"] { grid-column: 1; }
.st-key-conversations > [class*="st-key-menu-"] { grid-column: 2; opacity: 0.5; }
.st-key-conversations > [class*="st-key-menu-"]:is(:hover, :focus-within) { opacity: 1; }
.st-key-conversations [data-testid="stCaptionContainer"] { margin: 0; padding: 0.375rem 0.5rem 0; }
.st-key-conversations [data-testid="stCaptionContainer"] p { margin: 0; font-size: 0.75rem; }
.st-key-conversations button { min-height: 2rem; padding: 0.125rem 0.5rem; }
.st-key-conversations [class*="st-key-open-"] button { justify-content: flex-start; text-align: left; }
.st-key-conversations [class*="st-key-open-"] button > div { width: 100%; justify-content: flex-start; }
/* Of a menu's button only the sign is seen; its name is there to be read out. */
.st-key-conversations [class*="st-key-menu-"] button > div > [aria-hidden="true"] { display: none; }
.st-key-conversations [class*="st-key-menu-"] button [data-testid="stMarkdownContainer"] {
  position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
.steady-snippet { font-size: 0.75rem; opacity: 0.75; padding: 0 0.5rem 0.25rem; overflow-wrap: anywhere;
  display: -webkit-box; -webkit-line-clamp: 2; -webkit-box-orient: vertical; overflow: hidden; }
.steady-snippet mark { background: color-mix(in srgb, currentColor 18%, transparent); color: inherit;
  border-radius: 2px; }
.steady-table { width: 100%; border-collapse: collapse; font-size: 0.875rem; }
.steady-table :is(th, td) { padding: 0.25rem 0.5rem; text-align: start; vertical-align: top;
  overflow-wrap: anywhere; border-bottom: 1px solid color-mix(in srgb, currentColor 15%, transparent); }
.steady-table th { white-space: nowrap; }
.steady-details { font-size: 0.875rem; }
.steady-details th { font-weight: normal; opacity: 0.75; white-space: normal; }
.steady-details td { font-variant-numeric: tabular-nums; }
/* Figures stand under each other; a table that is too wide for a phone is moved within itself. */
.steady-figures { overflow-x: auto; }
.steady-figures :is(th, td) { text-align: end; white-space: nowrap; font-variant-numeric: tabular-nums; }
.steady-figures :is(th, td):first-child { text-align: start; white-space: normal; min-width: 7rem; }
/* As high as the choices beside it. */
.st-key-metrics_period button { min-height: 2.5rem; }
.st-key-metrics_figures [data-testid="stMetricValue"] { font-size: 1.5rem; }
.steady-deleted { overflow-wrap: anywhere; }
.steady-deleted small { display: block; opacity: 0.65; }
.st-key-backend_state p { font-size: 0.875rem; }
/* Reasoning is quieter than the answer; while it grows, its end is what is seen of it. */
[class*="st-key-reasoning-"] summary span:has(> [data-testid^="stExpanderIcon"]),
[class*="st-key-reasoning-"] > :has(> .stHtml) { display: none; }
[class*="st-key-reasoning-"] [data-testid="stExpanderDetails"] {
  margin-top: 0.5rem; padding: 0 0 0 0.75rem; opacity: 0.8;
  border-left: 2px solid color-mix(in srgb, currentColor 25%, transparent);
}
[class*="st-key-reasoning-"] [data-testid="stExpanderDetails"]
  :is([data-testid="stMarkdownContainer"], p, li, h1, h2, h3, h4, h5, h6) {
  font-size: 0.875rem; padding-top: 0;
}
[class*="st-key-reasoning-"]:has(.steady-thinking) [data-testid="stExpanderDetails"] {
  display: flex; flex-direction: column-reverse; max-height: 15rem; overflow-y: auto;
}
[data-testid="stTable"] td { overflow-wrap: anywhere; }
/* While a run goes on, Streamlit keeps a keyed element that has lost its place beside what took it. */
[data-retained="true"] { display: none; }
/* Nor may the conversation fade while a slow run is on its way to drawing it again. */
[class*="st-key-turn-"] [data-stale] { opacity: 1 !important; transition: none !important; }
/* What can be done with a turn is quiet: icons, whose names are there to be read out. The menu
   stands at the end of the answer's last line, where it costs no row. */
[class*="st-key-quiet-"] button { opacity: 0.65; padding: 0 0.25rem; min-height: 1.75rem; }
[class*="st-key-quiet-"] button:is(:hover, :focus-visible, [aria-expanded="true"]) { opacity: 1; }
[class*="st-key-quiet-"] button:disabled { opacity: 0.25; }
[class*="st-key-quiet-"] button [data-testid="stMarkdownContainer"] {
  position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%);
}
[class*="st-key-quiet-menu-"] button div[aria-hidden="true"] { display: none; }
.st-key-history [data-testid="stChatMessage"] { position: relative; }
.st-key-history [data-testid="stCaptionContainer"] { padding-right: 2rem; }
[class*="st-key-quiet-menu-"] { position: absolute; right: 0; bottom: 1rem; width: auto; }
[data-testid="stMainBlockContainer"] > [data-testid="stVerticalBlock"] { position: relative; }
.st-key-export { position: absolute; top: 0.75rem; right: 0; width: auto; z-index: 1; opacity: 0.8; }
.st-key-clipboard { position: absolute; height: 0; overflow: hidden; }
.steady-question { white-space: pre-wrap; overflow-wrap: anywhere; }
.steady-cache-question, .steady-cache-opening { overflow: hidden; text-overflow: ellipsis;
  white-space: nowrap; }
.steady-cache-question { font-weight: 600; }
.steady-cache-opening { opacity: 0.75; }
/* Receipts are short parts: no line ends within a Chinese word. */
[data-testid="stChatMessage"] [data-testid="stCaptionContainer"],
[class*="st-key-known-"] [data-testid="stCaptionContainer"] {
  word-break: keep-all; overflow-wrap: anywhere; }
.steady-near { opacity: 0.7; font-size: 0.875rem; }
[class*="st-key-known-"] { flex-wrap: nowrap; }
[class*="st-key-known-"] > :first-child { min-width: 0; }
/* Who opens an answer sees all of its question, too, and how it begins only once. */
[class*="st-key-entry-"]:has(details[open]) .steady-cache-question {
  white-space: pre-wrap; overflow-wrap: anywhere; }
[class*="st-key-entry-"]:has(details[open]) .steady-cache-opening { display: none; }
.st-key-cache_figures [data-testid="stMetricValue"] { font-size: 1.5rem; }
[data-testid="stMarkdownContainer"] table { display: block; overflow-x: auto; max-width: 100%; }
/* The doctor: what is to be looked at stands out, what is well is quiet. */
.steady-doctor ul { list-style: none; margin: 0; padding: 0; }
.steady-doctor li { display: grid; grid-template-columns: 1.25rem 9rem minmax(0, 1fr); gap: 0 0.5rem;
  margin: 0; padding: 0.375rem 0; font-size: 0.875rem; overflow-wrap: anywhere; }
.steady-doctor h3 { margin: 1rem 0 0.125rem; padding: 0; font-size: 1rem; }
.steady-doctor li > i { font-style: normal; font-weight: 700; text-align: center; color: var(--steady-level); }
.steady-doctor li > b { font-weight: 600; }
.steady-doctor small { opacity: 0.65; font-size: 0.75rem; }
.steady-doctor li:is(.is-skipped, .is-) { opacity: 0.65; }
.steady-doctor .is-ok { --steady-level: #2e9e5b; }
.steady-doctor .is-warn { --steady-level: #d97706; }
.steady-doctor .is-bad { --steady-level: #dc2626; }
.steady-doctor li:is(.is-warn, .is-bad) { margin-bottom: 0.5rem; padding: 0.5rem 0.75rem;
  grid-template-columns: 1.25rem minmax(0, 1fr); border-left: 3px solid var(--steady-level);
  background: color-mix(in srgb, var(--steady-level) 8%, transparent); border-radius: 0 0.375rem 0.375rem 0; }
.steady-doctor li:is(.is-warn, .is-bad) > span { grid-column: 2; }
.steady-doctor-overall { display: flex; flex-wrap: wrap; align-items: baseline; gap: 0 0.75rem;
  margin: 0.25rem 0 0.75rem; font-size: 1.25rem; font-weight: 600; }
.steady-doctor-overall small { font-weight: 400; }
@media (max-width: 640px) {
  .steady-doctor li { grid-template-columns: 1.25rem minmax(0, 1fr); }
  .steady-doctor li > span { grid-column: 2; }
}
.steady-context { display: flex; align-items: center; gap: 0.5rem; font-size: 0.75rem; opacity: 0.65; }
.steady-context span { flex: none; width: 4rem; height: 3px; border-radius: 2px;
  background: color-mix(in srgb, currentColor 20%, transparent); }
.steady-context i { display: block; height: 100%; border-radius: 2px; background: currentColor; }
</style>
"""

_WARM_UP = "```python\nready = True\n```\n\n$x$"


def apply_style() -> None:
    """Add the style sheet to the page."""
    st.html(_CSS)


def warm_up_browser(place: DeltaGenerator) -> None:
    """Have the browser load its highlighter and formula code before the first answer needs them.

    Otherwise the first code block of a session freezes the page for half a second or more.

    Args:
        place: a container with the key `warm_up`, which the style sheet keeps out of sight.
    """
    place.markdown(_WARM_UP)
