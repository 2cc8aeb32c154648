## Errors
error-internal = Something went wrong inside the app ({ $kind }). The question is kept; ask again. The log has the details.
error-invalid-request = This request can’t be answered: { $reason }
error-empty-question = The question is empty. Type something first.
error-question-too-long = The question has { $chars } characters; at most { $limit } fit. Shorten it by { $over }.
error-too-many-queued = { $limit } questions wait already in this conversation. Let the answer finish, or take one back.
error-context-overflow = The question, with all that has to go with it, has { $prompt_tokens } tokens and the model’s window holds { $limit }: { $over } too many. Shorten the question or the system prompt.
error-memory-window = The question, with all that has to go with it, has { $prompt_tokens } tokens and the memory that is free has room for { $limit }: { $over } too many. Shorten the question or the system prompt, or free some memory.
error-window-exceeded = The question doesn’t fit the model’s window. Shorten the question or the system prompt.
error-invalid-parameter = “{ $parameter }” is { $value }; it must lie between { $low } and { $high }.
error-stop-strings = At most { $limit } stop strings are taken, each of 1 to { $chars } characters.
error-not-allowed = The server refuses this request: { $reason }
error-settings = The setting “{ $setting }” is not right: { $reason }
error-not-signed-in = You are no longer signed in. Sign in, then try again.
error-sign-in-provider = The sign-in at { $url } can’t be reached now ({ $kind }). Try again in a moment. If it stays so, whoever runs this app should look at server_metadata_url in .streamlit/secrets.toml.
error-model = The model “{ $model }” can’t be made ready: { $reason }
error-model-not-found = There is no model “{ $model }”. Check its path or name in the settings (STEADY_CHAT_MODEL, or [[models]] in steady_chat.toml); the log says where it was looked for.
error-model-gone = There is no model “{ $model }” where it was looked for. Choose another; the log says where that was.
error-not-a-model = “{ $model }” is there, but it isn’t a chat model that can be loaded ({ $reason }).
error-remote-code = The model “{ $model }” wants to run code of its own. If you trust its author, set STEADY_CHAT_TRUST_REMOTE_CODE=true.
error-no-chat-template = The model “{ $model }” has no chat template, so it can’t be asked in turns. Choose an “instruct” or “chat” variant.
error-model-download = The model “{ $model }” couldn’t be downloaded. Check the network and pip’s index settings, then try again.
error-hub-download = The model “{ $model }” couldn’t be fetched from the hub. Check the network; HF_ENDPOINT names a mirror of the hub, HF_TOKEN opens gated models.
error-download-corrupt = The download of “{ $model }” arrived damaged and was thrown away. Try again.
error-disk-full = There isn’t enough room in { $folder }: { $needed_mb } MB are needed, { $free_mb } MB are free. Free some space, then try again.
error-missing-package = This model needs the package “{ $package }”. Install it with pip, then start the app again.
error-loading-stopped = Loading “{ $model }” was stopped. Try again, or load another model.
error-out-of-memory = The memory isn’t enough for “{ $model }”. Try a shorter conversation, fewer tokens, 4-bit weights or a smaller model.
error-weights-too-large = The memory that is free isn’t enough to load “{ $model }”. Choose a smaller model or 4-bit weights, or free some memory, then load it again.
error-server-unreachable = Nothing answers at { $url }. Is the server started, and is the address right?
error-server-host-unknown = The name “{ $host }” can’t be found. Check the server’s address ({ $url }).
error-server-timeout = { $url } didn’t answer within { $seconds } s. It may be overloaded or still starting; try again.
error-server-proxy-timeout = A proxy before { $url } gave up waiting for the answer. The server may just have been reading a long question: raise the proxy’s read timeout (nginx: proxy_read_timeout), then try again.
error-server-key = { $url } doesn’t accept the key. Set the right one: STEADY_CHAT_VLLM_API_KEY, or where several servers are named, api_key beside this one’s name in the settings.
error-server-model-unknown = { $url } has no model “{ $model }”. Choose another in the sidebar, and ask again. Which is asked at first is said in the settings: STEADY_CHAT_VLLM_MODEL, or model beside the server’s name.
error-server-parameter = { $url } doesn’t take { $parameter } as it is (“{ $reason }”). Change it in the sidebar, or leave it out.
error-server-busy = { $url } has too much to do right now. Try again in a moment.
error-server-starting = { $url } is still starting: it is loading its model.
error-server-fault = { $url } reported a fault of its own. Its log has the reason; try again.
error-server-garbage = What { $url } sends isn’t an OpenAI-compatible answer. Check that the address ends in /v1 and that no login page or proxy is in between.
error-connection-lost = The connection to { $url } broke off in mid-answer. What had arrived is kept; try again.
error-no-answer = The connection to { $url } broke off before the answer began. Ask again.
error-store = Conversations can’t be kept in { $place } right now. The chat goes on, and is saved as soon as that is possible.
error-store-locked = Something else holds { $place }, so nothing can be saved right now. The chat goes on, and is saved as soon as that is possible.
error-store-full = The disk with { $place } is full, so nothing can be saved. The chat goes on; make room, and it is saved.
error-store-read-only = { $place } may only be read, so nothing can be saved. The chat goes on; give this app the right to write there, and it is saved.
error-store-gone = { $place } can’t be reached, so nothing can be saved. The chat goes on, and is saved as soon as it is back.
error-store-broken = { $place } is damaged or isn’t a database, so nothing can be saved. Move it away, or put a copy of it back; the chat goes on meanwhile.
error-store-newer = { $place } was made by a newer version of Steady Chat. Update this one; until then nothing is saved.
error-store-fault = { $place } refused what should be saved ({ $kind }). The log has the details; the chat goes on, and saving is tried again.
error-conversation-gone = This conversation isn’t here any more. Start a new one.
error-preset = The preset wasn’t saved: { $reason }.
error-stalled = No new text came for { $seconds } s, so the answer was ended. What had arrived is kept; try again.
error-queue-full = { $limit ->
    [one] A question is waiting already, and only one may wait at a time. Try again in a moment.
   *[other] { $limit } questions are waiting already, the most that may. Try again in a moment.
}
error-too-many-waiting = { $limit ->
    [one] A question of yours is waiting already, and only one may at a time. Stop it, or wait for its turn; then ask this again.
   *[other] { $limit } questions of yours are waiting already, the most that may. Stop one, or wait for its turn; then ask this again.
}
error-shutting-down = The app is being stopped. Ask again when it is back.
error-server-tls = The certificate of { $url } can’t be trusted: it may be self-signed, expired or another host’s. Replace it, or name your own authority’s certificate file in SSL_CERT_FILE.
error-server-no-model = { $url } lists no model. Start the server with one, or name one in STEADY_CHAT_VLLM_MODEL.
error-import-file = There are no conversations in this file that can be read. Choose an export of Steady Chat, ChatGPT (conversations.json, or the ZIP it came in) or Open WebUI.
error-import-too-large = The file is larger than { $limit } MB, the most that can be imported. Export fewer conversations at a time.
error-import-damaged = The file is damaged or was cut short, so nothing in it can be read. Export or download it again.
reason-not-an-address = it must be an address such as http://127.0.0.1:8000/v1
reason-answer-too-long = the conversation takes { $prompt_tokens } of the window’s { $limit } tokens, so an answer of up to Max tokens doesn’t fit. Lower Max tokens, or clear the history.
reason-file-missing = there is no such file
reason-reading-failed = the file can’t be read ({ $kind })
reason-file-encoding = the file isn’t UTF-8 text
reason-not-toml = the file isn’t valid TOML
reason-not-json = the file isn’t valid JSON
reason-unknown-entry = there is no such entry
reason-unknown-entry-nearest = there is no such entry; did you mean “{ $nearest }”?
reason-at-least = it must be { $limit } or more
reason-more-than = it must be more than { $limit }
reason-at-most = it must be { $limit } or less
reason-whole-number = it must be a whole number
reason-number = it must be a number
reason-yes-or-no = it must be true or false
reason-one-of = it must be one of: { $allowed }
reason-text = it must be text
reason-empty = it must not be empty
reason-missing = it is missing
reason-value-not-json = it isn’t valid JSON
reason-hours = hours are more than 0 and at most 100,000
reason-same-name = the name “{ $name }” is there twice
reason-too-long = it must have at most { $limit } characters
reason-list = it must be a list
reason-stop-strings = at most { $limit } stop strings are taken, each of 1 to { $chars } characters
reason-object = it must be an object of named entries
reason-database-url = it is neither sqlite:///file nor postgresql+psycopg://user:password@host/name
reason-redis-url = it is neither redis://…, rediss://… nor unix://…, such as redis://:password@host:6379/0
reason-no-backend = it must name at least one backend
reason-text-file = it must be the name of a file, given in place of “text”
reason-needle = it must be text to look for in the question
reason-preset-unnamed = give it a name first
reason-preset-taken = there is a preset called “{ $name }” already
reason-preset-name-long = its name must have at most { $limit } characters
reason-preset-prompt-long = its system prompt must have at most { $limit } characters
reason-preset-many = there are { $limit } already, the most that are kept; delete one first
reason-not-valid = this value can’t be used
reason-scripted = the script says so
reason-import-entry = it isn’t a conversation of Steady Chat, ChatGPT or Open WebUI
reason-import-no-messages = there are no messages in it
reason-import-unreadable = it can’t be read
reason-import-large = it has more than { $limit } million characters
reason-import-damaged = the file is damaged from here on; nothing after this can be read
reason-import-packed = this file of the ZIP is damaged or locked with a password
reason-import-unpacked = the ZIP’s files have more than { $limit } MB unpacked; the rest wasn’t read
reason-import-many = at most { $limit } conversations of a file are read
reason-import-branches = its branches repeat too much text
reason-import-cut = { $count ->
    [one] a text with more than { $limit } characters was cut
   *[other] { $count } texts with more than { $limit } characters were cut
}
reason-import-left-out = { $count ->
    [one] a picture, recording or file in it couldn’t be taken along
   *[other] { $count } pictures, recordings or files in it couldn’t be taken along
}
reason-sign-in-missing = signing in needs it. Add it to .streamlit/secrets.toml (README, “Signing in”) and start the app anew
reason-secret-short = whoever guesses it can sign in as anybody. It must have { $limit } random characters or more, such as openssl rand -hex 32 gives
reason-callback = it must be the page’s own address with /oauth2callback at its end, such as https://chat.example.com/oauth2callback
reason-metadata-url = it must be the address of the provider’s metadata, which mostly ends in /.well-known/openid-configuration
reason-provider-name = a provider’s name can’t have an underscore
reason-sign-in-package = signing in needs the package { $package }. Install it with pip and start the app anew

## Page
app-title = Steady Chat
page-chat = Chat
page-setup = This installation
chat-welcome = Ask something. The answer streams in while the page stays yours.
chat-welcome-embedded = Ask something, in English: this is a tiny model to try the page with. README says how to use your own.
chat-lost = The conversation you were looking for isn’t here: it was deleted, or it is somebody else’s.
chat-input = Your question
chat-stop = Stop
chat-ask-again = Retry
chat-ask-again-without = Retry without { $parameter }
chat-earlier = Show earlier messages ({ $turns })
turn-menu = What to do with this turn
turn-copy = Copy answer
turn-copy-question = Copy question
turn-regenerate = Regenerate
turn-edit = Edit question
turn-continue = Continue
turn-delete = Delete this turn
turn-deleted = Turn deleted.
variant-previous = Show version { $at } of { $count }, before this one
variant-next = Show version { $at } of { $count }, after this one
edit-label = Question
edit-save = Save
edit-cancel = Cancel
export-menu = Export
export-copy = Copy as Markdown
export-markdown = Download Markdown
export-json = Download JSON
history-cleared = History cleared.
undo = Undo
copy-done = Copied
copy-by-hand = The browser doesn’t let this page copy. Copy it from here:
copy-close = Close
branch-elsewhere = An answer is being written in another branch.
branch-show = Show it
answer-interrupted-before = Interrupted: the app was ended before this was answered.
answer-interrupted = Interrupted: the app was ended in the middle of this answer.
question-long = A long question of { $chars } characters; the model reads all of it.
question-queued = Will be asked when the present answer is over.
question-withdraw = Take back
answer-elsewhere = Being answered by another process of this app…
answer-stopping = Stopping …
queue-place = { $place ->
    [1] First in line
    [2] Second in line
    [3] Third in line
   *[other] { ORDINAL($place) ->
        [one] { $place }st in line
        [two] { $place }nd in line
        [few] { $place }rd in line
       *[other] { $place }th in line
    }
}
answer-waiting = { queue-place } …
answer-waiting-model = { queue-place }; the model is getting ready ({ $phase }) …
answer-waiting-seconds = { queue-place }, about { $seconds } s …
answer-waiting-minutes = { queue-place }, about { $minutes } min …
answer-waiting-soon = { queue-place }, any moment now …
answer-preparing = The model is getting ready ({ $phase }); your question is next.
answer-reading = Reading the question … { $seconds } s
notice-reading = Reading the question … { $seconds } s of up to about { $about } s
notice-reading-part = Reading the question … { $percent } %
notice-busy = { $server } is busy; asking again in { $left } s (try { $try })
notice-away = { $why } Your question waits for it … { $seconds } s. Stop ends the waiting.
notice-joined = The same question was just asked by somebody: here comes that answer … { $seconds } s
notice-next = { $server } isn’t there ({ $why }) Asking { $next } … { $seconds } s
reasoning-thinking = Thinking …
reasoning-seconds = { $seconds } s
reasoning-thought = { $seconds ->
    [0] Thought for a moment
   *[other] Thought for { $seconds } s
}
answer-empty = The model ended its answer without saying anything.
answer-only-reasoning = It ended while the model was still thinking: there is no answer, only its reasoning above.
answer-only-reasoning-length = The token limit was reached while the model was still thinking: there is no answer, only its reasoning above. Raise Max tokens.
finish-stop = finished
finish-length = cut at the token limit
finish-abort = stopped
finish-error = failed
finish-not-begun = stopped before it began
finish-model-changed = stopped, because somebody has had “{ $model }” loaded for everybody
finish-interrupted = interrupted
receipt-tokens = { $tokens ->
    [one] { $tokens } token
   *[other] { $tokens } tokens
}
receipt-ttft = first text after { NUMBER($seconds, minimumFractionDigits: 2, maximumFractionDigits: 2) } s
receipt-speed = { NUMBER($speed, maximumFractionDigits: 1) } tokens/s
receipt-freeze = longest freeze { NUMBER($seconds, minimumFractionDigits: 2, maximumFractionDigits: 2) } s
receipt-waited = waited { $seconds } s
receipt-left-out = { $questions ->
    [one] the oldest question no longer fitted the model’s window and was left out
   *[other] the { $questions } oldest questions no longer fitted the model’s window and were left out
}
receipt-system-prompt = other system prompt

## The list of conversations
list-new = New chat
list-search = Search conversations
list-pinned = Pinned
list-today = Today
list-yesterday = Yesterday
list-empty = Nothing asked yet.
list-nothing-found = Nothing found. All the words must be in a title, or in one question and its answer.
list-untitled = Untitled
list-more = Show more
list-menu = More
list-rename = Rename
list-pin = Pin
list-unpin = Unpin
list-delete = Delete
list-undo = Undo deleting “{ $title }”

## Sidebar
sidebar-backend = Backend
backend-local = Local
backend-vllm = vLLM
backend-scripted = Scripted
model-unnamed = Model
phase-idle = not started
phase-draining = waiting for running answers to end
phase-fetching = fetching the model
phase-converting = converting, once only
phase-loading = loading
phase-warming = warming up
phase-asking = asking the server
phase-ready = ready
phase-unloaded = not in memory; the next question loads it
phase-failed = not available
phase-starting = starting
phase-unreachable = not reachable; looking again
phase-wrong-key = wrong key
sidebar-model = Model
sidebar-model-gone = { $server } doesn’t list this model now.
models-help = The models that the settings name, those in the model folders and, unless settings leave them out, those in the hub’s cache. One of them is in memory, for everybody who uses this page.
model-load = Load
model-load-anyway = Load it anyway
model-load-after = { $answers ->
    [one] Load when it is over
   *[other] Load when they are over
}
model-load-now = { $answers ->
    [one] Stop it and load
   *[other] Stop them and load
}
model-leave = Leave it
model-cancel = Cancel
model-mark-half = half downloaded
model-mark-trouble = can’t be used
model-mark-short = short chats only
model-mark-no = too large
model-trouble = “{ $name }” can’t be used: { $why }.
model-trouble-half = “{ $name }”: { $why }.
model-takes = “{ $name }” needs about { $needed }: { $weights } for its weights, { $context } for a full window ({ $tokens } tokens).
model-takes-weights = “{ $name }” needs about { $weights } for its weights.
model-unknown = What “{ $name }” needs is known once it is fetched.
model-fits = { $free } free: it fits.
model-short = { $free } free: conversations of up to about { $tokens } tokens fit.
model-no = { $free } free: it doesn’t fit.
model-many = Up to { $slots } are answered at once. That many full windows would need { $needed }, so long conversations may have to wait for one another.
model-cost = Loading it takes the model from everybody first. If the memory isn’t enough, the one before has to be loaded again, and whoever asks waits for both.
model-converts-beside = It is converted first, once only; questions are answered meanwhile.
model-converts-alone = It is converted first, once only. The memory isn’t enough for both, so nobody is answered meanwhile.
model-meanwhile = “{ $name }” answers meanwhile.
model-shared = Everybody here shares one model.
model-for-all = Everybody here shares one model; “{ $name }” leaves memory for it.
model-running = { $answers ->
    [one] { $answers } answer is running.
   *[other] { $answers } answers are running.
}
model-waiting = { $questions ->
    [one] { $questions } question is waiting; the new model answers it.
   *[other] { $questions } questions are waiting; the new model answers them.
}
model-batched = { $slots ->
    [one] Answers one question at a time.
   *[other] Answers up to { $slots } questions at once, in one batch.
}
model-side-by-side = { $slots ->
    [one] Answers one question at a time.
   *[other] Answers up to { $slots } questions at once, side by side.
}
model-note = Note: { $why }.
model-stopped = Loading “{ $model }” was stopped.
model-went-back = { $why } Back to “{ $back }”.
sidebar-retry = Try again
preset = Preset
preset-none = No preset
preset-changed = Preset · changed
preset-manage = Edit
preset-name = Name of the preset
preset-new = Save as a new preset
preset-update = Save the changes
preset-revert = Undo the changes
preset-rename = Rename
preset-usual = Use for new chats
preset-unusual = Don’t use for new chats
preset-delete = Delete
preset-undo = Bring the deleted preset back
sidebar-system-prompt = System prompt
sidebar-system-prompt-hint = How the model should behave
sidebar-temperature = Temperature
sidebar-temperature-help = 0 always takes the likeliest word; higher varies more.
sidebar-top-p = Top-p
sidebar-top-p-help = Only the likeliest words that together reach this share are considered.
sidebar-max-tokens = Max tokens
sidebar-seed = Seed
sidebar-seed-hint = random
sidebar-seed-help = The same seed and question give the same answer.
sidebar-more = More parameters
sidebar-default-hint = default
sidebar-not-sent = { $parameter } (not sent)
sidebar-not-sent-help = The server’s own value counts. “Don’t send”, under “More parameters”, changes that.
sidebar-top-k = Top-k
sidebar-top-k-help = Only this many of the likeliest words are considered; 0 is all. Empty: the model’s own.
sidebar-min-p = Min-p
sidebar-min-p-help = Words less likely than this share of the likeliest are left aside; 0 is none. Empty: the model’s own.
sidebar-repetition-penalty = Repetition penalty
sidebar-repetition-penalty-help = Above 1, words of the conversation become less likely; 1 changes nothing. Empty: the model’s own.
sidebar-presence-penalty = Presence penalty
sidebar-presence-penalty-help = Above 0, words that the answer has already become less likely.
sidebar-frequency-penalty = Frequency penalty
sidebar-frequency-penalty-help = Above 0, words become less likely each time that the answer uses them.
sidebar-stop = Stop strings
sidebar-stop-hint = one a line
sidebar-stop-help = The answer ends before the first of these. One a line, at most 4; \n is a line break.
sidebar-left-out = Don’t send
sidebar-left-out-help = For servers that don’t take it: their own value counts. An empty field above isn’t sent either.
sidebar-clear = Clear history
clear-question = { $turns ->
    [one] Delete this conversation’s only question and answer?
   *[other] Delete this conversation’s { $turns } questions and answers?
}
clear-yes = Delete

## The answer cache
cache-label = Answer cache: { $mode }
cache-mode = Reuse answers
cache-mode-off = off
cache-mode-off-help = The model is always asked.
cache-mode-exact = exact
cache-mode-exact-help = The very same question, with the same model and settings, is answered at once.
cache-mode-similar = exact and similar
cache-mode-similar-help = Also a question that asks the same in nearly the same words: framing, politeness, spelling. Where in doubt, the model is asked.
cache-fresh = Fresh answer
cache-fresh-help = The next question goes to the model, and its answer takes the kept one’s place.
cache-random = Also reuse sampled answers
cache-random-help = With a temperature above 0 and no seed the model would answer otherwise each time. Switch this on to have the kept answer all the same.
cache-in-trouble = The cache can’t be used at the moment: every question goes to the model.
cache-not-done = That couldn’t be done, for the cache can’t be used at the moment. Please try again.
cache-ask-anyway = Ask the model anyway
cache-wrong = Wrong match
cache-wrong-help = Your question isn’t that one. The other question’s answer is forgotten, for a year questions near yours are matched more strictly, and the model is asked now.
page-cache = Answer cache
cache-explain = Answers that finished by themselves are kept, and given again to the very same question, or to one in nearly the same words, as the sidebar says.
cache-report = What it did
cache-no-questions = No question was asked yet since the cache was emptied.
cache-share = { NUMBER($share, style: "percent", maximumFractionDigits: 0) }
cache-count-exact = exact
cache-exact-count = { $count ->
    [one] One question was the very same as one before.
   *[other] { $count } questions were the very same as ones before.
}
cache-count-similar = similar
cache-similar-count = { $count ->
    [one] One question asked the same as another in nearly the same words.
   *[other] { $count } questions asked the same as others in nearly the same words.
}
cache-count-missed = not in the cache
cache-missed-count = { $count ->
    [one] One question was answered by the model, and its answer kept if it could be.
   *[other] { $count } questions were answered by the model, and their answers kept if they could be.
}
cache-count-refused = never cached
cache-refused-count = { $count ->
    [one] For one question the cache isn’t used at all: see below why.
   *[other] For { $count } questions the cache isn’t used at all: see below why.
}
cache-saved = { $questions ->
    [one] One question
   *[other] { $questions } questions
}; { NUMBER($tokens) } tokens and { NUMBER($seconds) } s of generating saved.
cache-label-fresh = next one fresh
cache-similar-none = No embedding model is set: only the very same questions are found.
cache-similar-loading = Similar-question search is loading; the first time 84 MB are fetched. Until then only the very same questions are found.
cache-similar-ready = Ready. The embedded one reads English; other languages need another model (see README).
cache-similar-failed = Similar-question search can’t be used now: only the very same questions are found.
cache-count-fresh = asked anyway
cache-fresh-count = { $count ->
    [one] One question went to the model on purpose.
   *[other] { $count } questions went to the model on purpose.
}
cache-miss-reasons = Not in the cache, or not found in time: { $reasons }
cache-reason-unknown-model = the model wasn’t ready yet
cache-reason-late = the model was quicker
cache-reason-not-ready = similar questions couldn’t be looked for yet
cache-reason-unread = a language that the embedding doesn’t read
cache-reasons = Never cached: { $reasons }
cache-reason-count = { $reason } ({ $count })
cache-reason-random = sampled, without a seed
cache-reason-now = about now
cache-reason-creative = something new was asked for
cache-reason-personal = personal
cache-reason-long = too long
cache-reason-empty = empty
cache-near = Nearly given
cache-near-explain = Pairs of questions that looked alike, and were refused in doubt: the model answered. What you say of them is kept in the log for tuning.
cache-near-why = Refused: { $reason } · likeness { NUMBER($similarity, minimumFractionDigits: 2, maximumFractionDigits: 2) }
cache-same = Same question
cache-different = Not the same
cache-entries = What it holds
cache-empty = Nothing yet.
cache-totals = { $entries ->
    [0] No answers
    [one] One answer
   *[other] { NUMBER($entries) } answers
}, { $size }
cache-size = { NUMBER($size, maximumFractionDigits: 0) } KB
cache-hits = { $count ->
    [0] not given yet
    [one] given once
   *[other] given { $count } times
}
cache-forget = Forget
cache-more = Show more
cache-clear = Forget answers
cache-clear-model = Answers of
cache-any-model = any model
cache-clear-age = Age
cache-age-any = any
cache-age-hour = over an hour
cache-age-day = over a day
cache-age-week = over a week
cache-clear-button = Forget answers
cache-clear-question = Forget the answers chosen above? That can’t be undone.
cache-clear-all-question = Forget all answers, and the log? That can’t be undone.
cache-cleared = { $count ->
    [0] There was nothing to forget.
    [one] One answer was forgotten.
   *[other] { NUMBER($count) } answers were forgotten.
}
cache-export = Decision log
cache-export-help = One line of JSON for each decision: what was asked, what it was compared with, what was decided and why.
receipt-cached-exact = from the cache, exact
receipt-cached-similar = from the cache, similar to: “{ $question }”
receipt-age-new = just now
receipt-age-minutes = { $count ->
    [one] { $count } minute old
   *[other] { $count } minutes old
}
receipt-age-hours = { $count ->
    [one] { $count } hour old
   *[other] { $count } hours old
}
receipt-age-days = { $count ->
    [one] { $count } day old
   *[other] { $count } days old
}

## Signing in
sign-in-explain = Sign in to see your conversations.
sign-in = Sign in
sign-in-with = Sign in with { $provider }
sign-out = Sign out
signed-in-as = Signed in as { $name }

## Getting the model ready
step-draining = Let the running answers end
step-fetching = { $megabytes ->
    [0] Fetch the model (the first time only)
   *[other] Fetch the model ({ $megabytes } MB, the first time only)
}
step-converting = Convert it (the first time only)
step-loading = Load it
step-warming = Warm it up
step-elapsed = { $seconds } s

## This installation
setup-explain = The settings in force. Change one by an environment variable of this name, in a .env file, or in steady_chat.toml without the prefix and in lower case.
setup-name = Setting
setup-value = Value

## Conversations, all together
page-archive = Conversations
archive-waiting = Waiting for another import to end…
archive-export = Export
archive-count = { $count ->
    [0] There are no conversations yet.
    [one] { $count } conversation, with its other branches and answers.
   *[other] { $count } conversations, with their other branches and answers.
}
archive-json = Everything, as JSON
archive-json-help = Can be imported again, here or elsewhere.
archive-markdown = To read, as Markdown in a ZIP
archive-markdown-help = A file for each conversation, with the branch that is shown.
archive-file = conversations-{ $date }
archive-import = Import
archive-import-explain = Exports of Steady Chat, ChatGPT (conversations.json, or the ZIP it came in) and Open WebUI. What is here already stays as it is.
archive-upload = Choose files, or drop them here
archive-upload-button = Choose
archive-upload-limit = Up to { $limit } MB each, JSON or ZIP
archive-import-begin = { $count ->
    [one] Import { $count } file
   *[other] Import { $count } files
}
archive-reading = Reading { $file } …
archive-importing = { $file }: { $taken } of { $found } …
archive-report-added = { $count ->
    [0] No new conversation came in
    [one] { $count } conversation came in
   *[other] { $count } conversations came in
}
archive-report-known = { $count ->
    [one] { $count } was here already
   *[other] { $count } were here already
}
archive-report-restored = { $count ->
    [one] { $count } was deleted here and is back
   *[other] { $count } were deleted here and are back
}
archive-report-left-out = { $count ->
    [one] { $count } couldn’t be read
   *[other] { $count } couldn’t be read
}
archive-problem-row = Entry
archive-problem-title = Conversation
archive-problem-what = What couldn’t be read
archive-problem-partly = Came in, but { $reason }
archive-problem-left-out = Left out: { $reason }
archive-problem-more = { $count ->
    [one] … and { $count } more.
   *[other] … and { $count } more.
}
archive-report-again = Import the file again then: what came in stays, and nothing comes in twice.
archive-report-close = Close this report
archive-deleted = Deleted
archive-deleted-none = Nothing is deleted.
archive-deleted-explain = { $days ->
    [one] What was deleted can be brought back for { $days } day; then it goes for good.
   *[other] What was deleted can be brought back for { $days } days; then it goes for good.
}
archive-deleted-on = deleted on { $date }
archive-restore = Restore
archive-for-good = Delete for good
archive-for-good-question = Nobody can bring it back then.
archive-more = Show more

## Export
export-question = Question
export-answer = Answer
export-reasoning = Reasoning
export-untitled = Conversation
export-error = Error: { $reason }

## Reasons: local models
reason-no-chat-template = it has no chat template, so it can’t be asked in turns; choose an “instruct” or “chat” variant
reason-not-there = there is no model at this path or of this name; check it in the settings (STEADY_CHAT_MODEL, or [[models]] in steady_chat.toml)
reason-no-config = the folder has no config.json
reason-config-unreadable = its config.json can’t be read
reason-config-without-type = its config.json names no model type
reason-no-weights = there are no .safetensors weights in it
reason-only-bin-weights = its weights are there as .bin only, which can run code when it is read; save them as .safetensors
reason-neither-folder-nor-gguf = neither a folder nor a .gguf file
reason-file-unreadable = the file can’t be read
reason-not-gguf = not a GGUF file
reason-embedding-modules = its folder asks for more than a transformer and one way of pooling, which this app doesn’t do
reason-licence = its licence must first be accepted on the hub, and HF_TOKEN set
reason-weights-damaged = its weights are damaged or cut short
reason-no-numbers = what its weights give isn’t numbers: they are damaged, or need another number type (STEADY_CHAT_DTYPE)
reason-weights-missing = some of its weights are missing
reason-unknown-type = transformers knows no chat model of its type
reason-tokenizer-unreadable = its tokenizer can’t be read
reason-part-unreadable = one of its files can’t be read
reason-no-batching = it can’t give several answers in one batch, as STEADY_CHAT_BATCHING=on demands; with “auto” each would be generated by itself
reason-no-thread = the system lets the app start no more threads
reason-folder-not-writable = the folder { $folder } can’t be written
reason-gguf-damaged = the GGUF file is damaged, or of a kind that can’t be read
reason-gguf-not-converted = the GGUF file can’t be converted
reason-gguf-split = it is split into several GGUF files; join them first
reason-half-downloaded = it is downloaded in part only; loading it fetches the rest
reason-folder-missing = there is no such folder
reason-conversion-stalled = converting it stood still for { $minutes } minutes and was ended
reason-template-empty = the model’s chat template makes an empty prompt of it
reason-template-refuses = the model’s chat template refuses it (“{ $says }”)
reason-flash-not-installed = flash attention isn’t used, because the package flash-attn isn’t installed
reason-flash-no-gpu = flash attention isn’t used, because the model doesn’t run on a GPU that has it
reason-flash-not-supported = flash attention isn’t used, because this type of model can’t use it
reason-flash-number-type = flash attention isn’t used, because it needs bfloat16 or float16 numbers
reason-flash-refused = flash attention isn’t used, because it doesn’t work on this GPU

context = Context
context-exact = Context: { $tokens } of { $window } tokens
context-about = Context: about { $tokens } of { $window } tokens
context-no-window-exact = Context: { $tokens } tokens
context-no-window-about = Context: about { $tokens } tokens
context-full = The model’s window ({ $window } tokens) is full: the next answer is given without the oldest questions, as far as that makes room.

## The answer cache: its page
cache-open = Whole answer
cache-gone = It isn’t there any more.
cache-search = Search the questions
cache-not-found = No kept answer’s question has that in it.
cache-is-shared = shared
cache-shared = What is marked as shared is all users’. Nobody’s name is kept with it, so it can’t be forgotten here: it stays until it expires, or a fresh answer takes its place.
cache-shared-free = What is marked as shared is all users’. Any user may forget it, and then it is gone for everybody.
cache-clears-own = Shared answers stay.
cache-clears-shared = The shared ones among them are gone for everybody.

## The doctor
page-doctor = Doctor
doctor-explain = Looks at the model, the servers, where things are kept and how the app is run, and says of each in a sentence how it is. Servers are asked for two or three short answers. Each store is given something small, which is deleted again; nobody’s own is changed.
doctor-start = Check now
doctor-again = Check again
doctor-copy = Copy the report
doctor-at = checked at { $time }
doctor-took = { $seconds } s
doctor-checking = Checking: { $done } of { $total } done
doctor-problems = { $count ->
    [one] One thing to look at
   *[other] { $count } things to look at
}
doctor-all-well = All is well
doctor-level-bad = Doesn’t work
doctor-level-warn = To look at
doctor-level-ok = Well
doctor-level-skipped = Nothing to say
doctor-level-running = Checking …
doctor-too-long = This took longer than { $seconds } s and was given up: what it asked doesn’t answer. See whether that hangs, then check again.
doctor-still-hanging = The last check of this hangs yet, so it wasn’t begun again. See what it waits for, or start the app anew.
doctor-failed = This couldn’t be checked ({ $kind }). The app’s log has the details.
doctor-group-local = Local model
doctor-group-server = Server { $name }
doctor-group-stores = What is kept
doctor-group-streamlit = How the app is run
doctor-check-state = State
doctor-check-files = Files
doctor-check-tokenizer = Tokenizer
doctor-check-template = Chat template
doctor-check-device = Computing
doctor-check-attention = Attention
doctor-check-memory = Memory
doctor-check-threads = Threads
doctor-check-line = Waiting line
doctor-check-reach = Reach and key
doctor-check-model = Model
doctor-check-stream = Stream
doctor-check-clock = Clock
doctor-check-database = Database
doctor-check-redis = Redis
doctor-check-answers = Answer cache
doctor-check-folder = Data folder
doctor-check-disk = Disk
doctor-check-access = Who gets in
doctor-check-api = The API
doctor-check-collect = Garbage collection
doctor-check-message = Message size
doctor-check-ping = Web socket pings
doctor-check-watch = File watching
doctor-check-cors = CORS
doctor-check-xsrf = XSRF protection
doctor-not-loaded = Not loaded yet: choose the local model and ask something first, then check again.
doctor-loading = It is being made ready; check again when that is over.
doctor-not-loadable = The model can’t be loaded; see “State”.
doctor-state-ready = { $model } is loaded and answers.
doctor-state-warm = { $model } is loaded; its first answer, the warm-up, took { $seconds } s.
doctor-state-slow = { $model } is loaded, but its warm-up took { $seconds } s: it is large for this machine, or the machine was busy; a smaller model or a GPU helps.
doctor-files-ok = The files of { $model } are there (hash { $hash }).
doctor-files-changed = The files of { $model } are others now (hash { $hash }) than those that were loaded: start the app anew to have them.
doctor-files-not-fetched = The files of { $model } have yet to be fetched or converted; its first question does that.
doctor-files-unreadable = The files of { $model } can’t be read: give this app the right to read them.
doctor-files-trouble = The model can’t be used: { $reason }.
doctor-tokenizer-ok = Fast, and Chinese and emoji come whole through the stream, token by token ({ $tokens } tokens).
doctor-tokenizer-slow = Chinese and emoji come whole through the stream, but it is a slow tokenizer, without a Rust part: a tokenizer.json in the model’s folder makes it quick.
doctor-tokenizer-lossy = Some Chinese characters or emoji are lost between text and tokens: this model can’t spell them; take another one for such texts.
doctor-template-ok = It makes prompts, with a system prompt and without ({ $tokens } tokens for a short question).
doctor-template-there = It is there; whether it makes prompts is seen once the model is loaded.
doctor-template-no-system = It makes prompts, but refuses a system prompt: leave that empty with this model.
doctor-device-ok = On { $device }, with { $dtype } numbers; quantization: { $quantization }.
doctor-device-split = The model is split between { $device } ({ $dtype }), which is slow: take a smaller one, or STEADY_CHAT_QUANTIZATION=4bit, so that it fits the GPU.
doctor-attention-batched = It computes with { $attention }, up to { $slots } answers in one batch.
doctor-attention-plain = It computes with { $attention }, each answer by itself, { $slots } at once.
doctor-attention-note = It computes with { $attention }: { $reason }.
doctor-memory-fits = It needs about { $needed } GB with one full window, and { $free } GB are free.
doctor-memory-short = It needs about { $needed } GB with one full window, and { $free } GB are free: conversations of up to { $tokens } tokens fit. A smaller model or quantization makes room.
doctor-memory-no = It needs about { $needed } GB, and only { $free } GB are free: take a smaller model, or STEADY_CHAT_QUANTIZATION=4bit.
doctor-threads-ok = Threads: { $threads }, processors: { $cores }.
doctor-threads-many = { $threads } threads on { $cores } processors get in each other’s way: leave STEADY_CHAT_THREADS empty, or set it to { $cores }.
doctor-threads-few = Threads: only { $threads }, processors: { $cores }. For quicker answers unset STEADY_CHAT_THREADS (and OMP_NUM_THREADS).
doctor-threads-gpu = The model doesn’t compute on the processor.
doctor-line-ok = { $waiting } waiting; { $slots } are answered at once.
doctor-line-long = { $waiting } are waiting and { $slots } are answered at once: more slots, another server or a quicker model shortens the line.
doctor-server-unset = No server is set up, and nothing answers at the usual address. Set STEADY_CHAT_VLLM_BASE_URL to use one, or STEADY_CHAT_BACKENDS to leave servers out.
doctor-server-unasked = The server couldn’t be asked; see “Reach and key”.
doctor-reach-key = It answers, in { $ms } ms, and takes the key.
doctor-reach-open = It answers, in { $ms } ms, and wants no key.
doctor-reach-wrong-key = It refuses the key (401): set the one that the server was started with as STEADY_CHAT_VLLM_API_KEY, or as the server’s api_key in steady_chat.toml.
doctor-reach-no-key = It wants a key (401) and none is set: set the server’s key as STEADY_CHAT_VLLM_API_KEY, or as the server’s api_key in steady_chat.toml.
doctor-reach-forbidden = It knows who asks and doesn’t allow it (403): let the server or the gateway before it permit this key, or this machine.
doctor-model-there = { $model } is there; the server doesn’t tell its window.
doctor-model-window = { $model } is there, with a window of { $window } tokens.
doctor-model-narrow = { $model } is there, but its window of { $window } tokens hardly holds answers of { $limit }: start the server with a larger one (vLLM: --max-model-len), or lower STEADY_CHAT_MAX_TOKENS.
doctor-model-missing = { $model } isn’t among the { $count } models that the server lists: correct its name in the settings, or start the server with it.
doctor-model-none = The server lists no model: start it with one.
doctor-stream-flows = The answer comes as it is written, in { $bursts } steps; an answer of one token takes { $first } ms.
doctor-stream-quick = A short answer is there so quickly that nothing can hold it back noticeably; one of one token takes { $first } ms.
doctor-stream-held = The stream is held back on its way: what took { $seconds } s to write came in bursts ({ $bursts }). Switch off buffering and packing in the proxy before the server (nginx: proxy_buffering off, gzip off).
doctor-stream-short = The answer was too short to see how it comes.
doctor-clock-same = It goes as this machine’s does.
doctor-clock-ahead = It is { $seconds } s ahead of this machine’s: have both set by NTP.
doctor-clock-behind = It is { $seconds } s behind this machine’s: have both set by NTP.
doctor-clock-untold = The server doesn’t tell the time.
doctor-database-file = The database, a file here, takes, gives and deletes a row, in { $ms } ms.
doctor-database-server = The database server takes, gives and deletes a row, in { $ms } ms.
doctor-database-lost = The database took a row and doesn’t give it back: see whether another process replaces its file or resets it.
doctor-database-locked = Something else holds the database, so nothing is saved: see which process has it open, such as a backup or another tool.
doctor-database-full = The disk with the database is full, so nothing is saved: make room.
doctor-database-read-only = The database may only be read, so nothing is saved: give this app the right to write there.
doctor-database-gone = The database can’t be reached, so nothing is saved: see whether its server runs, or its folder is there, and whether STEADY_CHAT_DATABASE_URL is right.
doctor-database-broken = The database is damaged or isn’t one, so nothing is saved: move it away, or put a copy of it back.
doctor-database-newer = The database was made by a newer version of Steady Chat: update this one.
doctor-database-fault = The database refuses what should be saved: the app’s log has the details.
doctor-redis-ok = Redis takes, gives and deletes an answer; reading takes { $ms } ms.
doctor-redis-slow = Redis takes { $ms } ms to give an answer, and the cache waits { $limit } ms, so the model is asked: move Redis nearer.
doctor-redis-lost = Redis took an answer and doesn’t give it back: give it more memory (maxmemory), or another policy than to drop it at once.
doctor-redis-password = Redis refuses the password, or the user may not write: correct it in STEADY_CHAT_REDIS_URL or REDIS_URL.
doctor-redis-full = Redis is full: give it more memory, or a policy that drops old keys (maxmemory-policy allkeys-lru).
doctor-redis-read-only = Redis may only be read: name the primary, not a replica, or see why it can’t save.
doctor-redis-failed = Redis can’t be used ({ $kind }), so the model is asked every time: see whether it runs, and whether STEADY_CHAT_REDIS_URL (or REDIS_URL) is its address.
doctor-answers-ok = The cache’s file takes, gives and deletes an answer, in { $ms } ms.
doctor-answers-lost = The cache’s file took an answer and doesn’t give it back: see whether another process removes or replaces the file, or empty the cache.
doctor-answers-failed = The cache’s file can’t be used ({ $kind }), so the model is asked every time: see whether this app may write into its folder.
doctor-folder-ok = A file can be written there, and deleted.
doctor-folder-full = Nothing can be written there: the disk is full. Make room.
doctor-folder-read-only = This app may not write there: give it the right to, or name another folder with STEADY_CHAT_DATA_DIR.
doctor-folder-gone = It can’t be reached: see whether its disk is there, or name another folder with STEADY_CHAT_DATA_DIR.
doctor-disk-ok = { $free } GB are free ({ $percent } %).
doctor-disk-scarce = Only { $free } GB are free ({ $percent } %): make room before conversations can’t be saved.
doctor-disk-full = The disk is as good as full ({ $free } GB free): make room now, or nothing can be saved.
doctor-access-signs-in = Nobody sees the page without signing in.
doctor-access-here = Only this machine reaches the page (server.address).
doctor-access-open = Whoever reaches this machine may use the page, and read what is asked there: set server.address = "localhost" in .streamlit/config.toml (STREAMLIT_SERVER_ADDRESS goes before it), or have people sign in (README, “Signing in”).
doctor-access-proxy = The page is reached through a proxy and nobody signs in here: have people sign in (README, “Signing in”), unless the proxy asks who they are.
doctor-api-off = It is switched off.
doctor-api-here = Programs on this machine may use it without a key; what comes through a proxy may not.
doctor-api-key = Whoever has the key (STEADY_CHAT_API_KEY) may use it from wherever the page is reached; the page’s signing in isn’t asked for.
doctor-option-ok = { $option } is { $value }, as it should be.
doctor-option-unset = { $option } is left to Streamlit, as it should be.
doctor-option-collect = { $option } is { $value }: after every click all answers stand still for a moment. Set it to { $wanted }, or start the app in its own folder, where its .streamlit/config.toml is.
doctor-option-message = { $option } is { $value } MB, and long questions are refused: the app’s own is { $wanted }. Start it in its own folder, where its .streamlit/config.toml is.
doctor-option-ping = { $option } is { $value }, and proxies close a connection that is quiet for so long: take it out, or set at most 30.
doctor-option-watch = { $option } is { $value }: watching thousands of files costs processor time for nothing. Set it to { $wanted }, or start the app in its own folder, where its .streamlit/config.toml is.
doctor-option-cors = { $option } is { $value }: other web sites may talk to this app in a visitor’s name. Set it to { $wanted }.
doctor-option-xsrf = { $option } is { $value }: other web sites may send files in a visitor’s name. Set it to { $wanted }.

## Details of an answer
turn-details = Details
details-waited = Waited for its turn and the model
details-prompt = Prompt
details-ttft = Read the prompt (TTFT)
details-reasoning = Thought
details-decode = Wrote the answer
details-speed = Speed
details-itl = Gaps between pieces (ITL)
details-itl-values = p50 { NUMBER($p50, maximumFractionDigits: 0) } ms, p95 { NUMBER($p95, maximumFractionDigits: 0) } ms
details-screen = On the screen
details-unseen = the browser said nothing of it
details-frames = Frames drawn
details-frames-values = { NUMBER($frames) }
details-sent = Text sent to the browser
details-kb = { NUMBER($size, maximumFractionDigits: 1) } kB
details-longest-freeze-ms = Longest freeze
details-inp-ms = Slowest reply to a key or click (INP)
details-blocked-ms = Time in which input would have had to wait
details-lag-ms = Screen behind at the end
details-ms = { NUMBER($value, maximumFractionDigits: 0) } ms
details-seconds = { NUMBER($seconds, minimumFractionDigits: 2, maximumFractionDigits: 2) } s
details-flight = Timings as a file
details-flight-help = When each piece came and each frame went, without any text. It can be played again: see “flight_file” in the documentation.
details-hide = Hide
reason-flight-file = it must be the name of a file, given in place of “schedule”

## Metrics
page-metrics = Metrics
metrics-explain = How fast, how smoothly and how reliably answers came, everybody’s together. Only figures are kept, for 90 days: no text, and no names but those of models and servers. Everybody who may use this page can also get them as CSV, one answer a line, with the hour in which it ended.
metrics-in-trouble = The figures can’t be read at the moment; answers are given all the same.
metrics-period = Period
metrics-period-hour = Last hour
metrics-period-day = Last day
metrics-period-all = All
metrics-backend = Backend
metrics-backend-any = All backends
metrics-model = Model
metrics-model-any = All models
metrics-empty-hour = No answer has ended in the last hour. Ask something, or choose a longer period.
metrics-empty-day = No answer has ended in the last day. Ask something, or choose a longer period.
metrics-empty-all = No answer has ended yet. Ask something, and its figures are here.
metrics-empty-filtered = Answers ended in this period, but none of the backend and model chosen. Choose others, or all.
metrics-count = { NUMBER($count) }
metrics-share = { NUMBER($share, style: "percent", maximumFractionDigits: 1) }
metrics-seconds = { NUMBER($value, maximumFractionDigits: 2) } s
metrics-ms = { NUMBER($value, maximumFractionDigits: 0) } ms
metrics-speed = { NUMBER($speed, maximumFractionDigits: 1) }
metrics-figure-answers = Answers
metrics-figure-ttft = TTFT p50
metrics-figure-speed = Tokens/s
metrics-figure-stopped = Stopped
metrics-figure-failed = Failed
metrics-figure-cached = From the cache
metrics-help-answers = All that ended in this period, stopped and failed ones too.
metrics-help-ttft = Time to first token: from when the model read the question to its first text. Half of the answers were quicker.
metrics-help-speed = Tokens a second after the first, of the answer in the middle.
metrics-help-stopped = By a person, before the end.
metrics-help-failed = Ended with an error, or couldn’t begin.
metrics-help-cached = Given from the answer cache. They count for nothing below that is about the model’s speed.
metrics-speed-title = The model’s speed
metrics-ttft = TTFT: time to first token
metrics-tpot = TPOT: time per token after it
metrics-itl-p50 = ITL, usual: an answer’s p50
metrics-itl-p95 = ITL, long: an answer’s p95
metrics-method = Percentiles by nearest rank: p95 is the value that 95 of 100 answers keep to. ITL is the gap between two pieces as they arrive; a server’s piece may hold several tokens. Answers that were stopped or failed count with what came of them: without those that people gave up on, a slow model would look quick.
metrics-sampled = There are many answers: percentiles are of one answer in { NUMBER($every) }, counts of all.
metrics-screen-title = On the screen
metrics-screen-none = No browser has told anything of these answers yet.
metrics-freeze = Longest freeze in an answer
metrics-inp = INP: reply to a click or key
metrics-inp-good = INP p75 is { NUMBER($value, maximumFractionDigits: 0) } ms: good (up to { NUMBER($limit) } ms).
metrics-inp-slow = INP p75 is { NUMBER($value, maximumFractionDigits: 0) } ms: too slow (good is up to { NUMBER($limit) } ms).
metrics-course-title = Over time
metrics-course-answers-minutes = Answers, in 5 minutes each
metrics-course-answers-hour = Answers an hour
metrics-course-answers-day = Answers a day
metrics-course-ttft = TTFT in seconds
metrics-course-freeze = Longest freeze in milliseconds, p75
metrics-outcome-whole = Whole
metrics-outcome-stopped = Stopped
metrics-outcome-failed = Failed
metrics-time = Time
metrics-figure = Figure
metrics-value = Value
metrics-models-title = By model
metrics-head-model = Model
metrics-head-answers = Answers
metrics-head-ttft-p50 = TTFT p50
metrics-head-ttft-p95 = TTFT p95
metrics-head-tpot-p50 = TPOT p50
metrics-head-speed = Tokens/s
metrics-head-failed = Failed
metrics-errors-title = Errors
metrics-head-error = What failed
metrics-head-count = Times
metrics-head-log-name = In the log
metrics-error-request = The question or its parameters
metrics-error-memory = Memory
metrics-error-model = The local model
metrics-error-busy = The server was busy
metrics-error-connection = The connection was lost
metrics-error-server = The server
metrics-error-stalled = No more text came
metrics-error-queue = Too many were waiting
metrics-error-shutdown = The app was stopped
metrics-error-other = Something else
metrics-process-title = The app itself
metrics-export = Figures as CSV
metrics-export-help = One answer a line: figures, the names of models and servers, and the hour (UTC) in which it ended; no text.

## The answer cache on a full disk
cache-disk-full = That couldn’t be done, for the disk that the cache is on is full. Please make some room on it, then try again.

## The answer cache: whether it is in use, and what became of a click
cache-label-unused = not used now
cache-used = **In use now**: who asks again what was asked before gets the kept answer.
cache-used-fresh = **Not used for the next question**: the model answers it. From then on the cache is in use again.
cache-unused = **Not used now**: with a temperature above 0 (or none sent) and no seed, answers are expected to vary. Set the temperature to 0, or a seed under “{ sidebar-more }”, or switch on “{ cache-random }”.
cache-ask-anyway-exact-help = The model answers once more, beside this answer. If the settings are still the same, what it says replaces the kept answer.
cache-ask-anyway-similar-help = The model answers your own question, beside this answer, and that is kept for it. The other question’s answer stays; questions near yours are matched more strictly from now on.
cache-wrong-shared-help = Your question isn’t that one. The other question’s answer is forgotten (a shared one stays), for a year questions near yours are matched more strictly, and the model is asked now.
cache-keeps-own = Everybody’s answers are their own.
cache-keeps-shared = First questions without personal data are shared here: all users may be given their answers. All other answers are each account’s own.
cache-one-account = Nobody signs in here, so all who open the page are one account.
cache-near-asked = Asked
cache-near-kept = Kept
cache-near-judged-same = Noted: the same question.
cache-near-judged-different = Noted: not the same question.
cache-near-reason-words = the words differ
cache-near-reason-numbers = the numbers differ
cache-near-reason-names = the names differ
cache-near-reason-negation = one of them negates
cache-near-reason-order = the same words in another order
cache-near-reason-quoted = what is quoted differs
cache-near-reason-code = code or special characters differ
cache-near-reason-lines = what follows the first line differs
cache-near-reason-long = too long to be compared
cache-near-reason-language = a language that can’t be compared
cache-near-reason-other = something may differ
cache-clear-all-count = { $count ->
    [0] Nothing is kept. Forget the log?
    [one] Forget the one answer, and the log?
   *[other] Forget all { NUMBER($count) } answers, and the log?
} That can’t be undone.
cache-clear-yes = Forget
finish-joined = shared with the same question that was just being answered
reason-embedding-missing = there is no such folder, and the hub has no model of that name. Check STEADY_CHAT_EMBEDDING_MODEL

## In the terminal
terminal-about = Ask a language model and see the answer as it is generated. Without a question, at a terminal, it is a chat. The answer goes to standard output, everything else to standard error.
terminal-arguments = what may be said
terminal-help-question = the question; what comes on standard input stands before it, or where “-” stands
terminal-help-chat = keep a conversation: one question after another, until /exit or Ctrl-D; /clear begins anew
terminal-help-backend = who is asked: local, vllm, vllm/NAME of a server in the settings, scripted; else the first of the settings
terminal-help-model = which model: a folder, a .gguf file, a hub id, a name in the settings; with a server one of its models
terminal-help-system = the system prompt, in place of the settings’
terminal-help-temperature = 0 to 2, in place of the settings’
terminal-help-max-tokens = how long the answer may get, in place of the settings’
terminal-help-reasoning = put what a reasoning model thinks on standard error; at a terminal it is shown anyway
terminal-help-plain = plain text, also on a terminal that could show more
terminal-help-language = the language of all but the answer
terminal-help-help = show this, and end
terminal-exit = exit codes:
terminal-exit-0 = answered
terminal-exit-1 = the model failed, or something unforeseen happened
terminal-exit-2 = the command line or a parameter can’t be used
terminal-exit-3 = a setting is wrong
terminal-exit-4 = the server can’t be reached, or failed
terminal-exit-5 = the server refused: its key, or what it was asked
terminal-exit-6 = the question is too long
terminal-exit-7 = the answer was cut at the token limit
terminal-exit-8 = there is no such model, or it can’t be loaded
terminal-exit-130 = stopped by Ctrl-C; what had come is there
terminal-exit-141 = nobody read the answer any more
terminal-usage = The command line can’t be used: { $reason }. See --help.
terminal-no-backend = there is no backend “{ $name }”, only { $known }
terminal-output = The answer can’t be written ({ $kind }). Is there room on the disk?
terminal-chat-begins = /clear begins anew, /exit or Ctrl-D leaves; Ctrl-C stops an answer.
terminal-chat-leave = Once more Ctrl-C, or Ctrl-D, leaves.
terminal-chat-cleared = A new conversation.
terminal-error-empty-question = There is no question. Give one as an argument or on standard input.
terminal-error-internal = Something went wrong inside the program ({ $kind }). What is above says where.
terminal-error-model-not-found = There is no model “{ $model }”. Check --model, or its path or name in the settings (STEADY_CHAT_MODEL, or [[models]] in steady_chat.toml). What is above says where it was looked for.
terminal-error-server-model-unknown = { $url } has no model “{ $model }”. Name another with --model. Which is asked otherwise is said in the settings: STEADY_CHAT_VLLM_MODEL, or model beside the server’s name.
terminal-error-server-parameter = { $url } doesn’t take { $parameter } as it is (“{ $reason }”). Change it on the command line or in the settings.
terminal-notice-away = { $why } The question waits for it … { $seconds } s. Ctrl-C ends the waiting.

## The API
api-disabled = The API is switched off. Set STEADY_CHAT_API_KEY, or STEADY_CHAT_API_ON_LOOPBACK=true for programs on the app’s own machine, and start the app anew.
api-key-missing = The API wants its key: send “Authorization: Bearer” with the key behind it.
api-invalid-api-key = This isn’t the API’s key. Check STEADY_CHAT_API_KEY where the app runs.
api-loopback-only = Without a key the API is for programs on the app’s own machine, and not through a proxy. Set STEADY_CHAT_API_KEY to open it to others.
api-host-not-allowed = Without a key the API is asked by the names localhost, 127.0.0.1 and [::1] only.
api-origin-not-allowed = Web pages of other addresses may not use the API. Name this page’s address in STEADY_CHAT_API_ORIGINS.
api-body-too-large = The request has more than { $limit } KB. Send less, or raise STEADY_CHAT_API_MAX_BODY_KB.
api-body-too-slow = The request’s body didn’t come in time. Send it again.
api-invalid-json = The request’s body isn’t a JSON object.
api-missing-parameter = “{ $name }” is missing.
api-invalid-value = “{ $name }” can’t be used: { $why }.
api-unknown-parameter = There is no parameter “{ $name }”.
api-unsupported-parameter = “{ $name }” isn’t supported here. Leave it out.
api-unsupported-content = Only text can be sent here: leave out images, sounds and files.
api-model-not-found = There is no model “{ $model }” here. /v1/models lists those that there are.
api-unknown-url = There is nothing at this address. The API has /v1/models, /v1/chat/completions, /v1/embeddings and /stream.
api-method-not-allowed = This address isn’t asked in this way; the header Allow names the ways that it is.
api-time-limit = The request took longer than one may (STEADY_CHAT_API_TIME_LIMIT_S), so it was ended. Ask for less at once.
api-stopped = The answer was stopped before it was whole. Ask again.
api-too-many-streams = There are { $limit } answers on /stream already. Ask again in a while.
api-stream-not-found = There is no such answer, or nobody followed it for too long. Ask again.
api-invalid-event-id = Last-Event-ID isn’t the id of one of this answer’s events.
api-embeddings-not-ready = The embedding model is getting ready. Ask again in a while.
api-embeddings-busy = Too many texts wait to be embedded. Ask again in a while.
api-internal-error = Something went wrong inside the app ({ $kind }). Ask again; its log has the details.
api-reason-origin = each must be a page’s origin as browsers spell it, such as http://localhost:9000
api-reason-too-many = it may have at most { $limit } entries
api-reason-no-question = it must have a message of the user’s with some text
api-reason-last-message = the last message must be the user’s, or the assistant’s to be gone on with
api-reason-texts = it must be text, or a list of texts

## Doctor and metrics: what is in force, each process by itself
doctor-quantization-none = none
metrics-head-server = Server
metrics-head-stopped = Stopped
metrics-process-now = The process that drew this page, now: { NUMBER($queue) } in line, { NUMBER($memory, maximumFractionDigits: 0) } MB of memory.
metrics-process-each = In this period, of any one process at a time, as each looks at itself once a minute: { NUMBER($queue) } in line (p95), { NUMBER($most) } at most; { NUMBER($highest, maximumFractionDigits: 0) } MB at most.
metrics-process-several = Where several processes share the database, all other figures on this page are of their answers together; line and memory aren’t added up.
