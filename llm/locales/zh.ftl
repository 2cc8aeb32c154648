## Errors
error-internal = 应用内部出错了（{ $kind }）。问题已保留，请重新提问。详细原因见日志。
error-invalid-request = 无法回答这个请求：{ $reason }
error-empty-question = 问题是空的，请先输入内容。
error-question-too-long = 问题有 { $chars } 个字符，最多允许 { $limit } 个，请删减 { $over } 个字符。
error-too-many-queued = 这个对话里已有 { $limit } 个问题在等待。请等当前回答结束，或撤回其中一个。
error-context-overflow = 这个问题（连同必须附带的内容）共有 { $prompt_tokens } 个词元，模型的上下文窗口只能容纳 { $limit } 个，超出 { $over } 个。请缩短问题或系统提示词。
error-memory-window = 这个问题（连同必须附带的内容）共有 { $prompt_tokens } 个词元，而空闲内存只能容纳 { $limit } 个，超出 { $over } 个。请缩短问题或系统提示词，或者释放一些内存。
error-window-exceeded = 这个问题超出了模型的上下文窗口。请缩短问题或系统提示词。
error-invalid-parameter = “{ $parameter }”的值是 { $value }，应在 { $low } 到 { $high } 之间。
error-stop-strings = 停止字符串最多 { $limit } 个，每个 1 到 { $chars } 个字符。
error-not-allowed = 服务器拒绝了这个请求：{ $reason }
error-settings = 设置项“{ $setting }”有误：{ $reason }
error-not-signed-in = 登录已失效。请登录后重试。
error-sign-in-provider = 目前无法连接登录服务 { $url }（{ $kind }）。请稍后重试；如果一直如此，请应用的管理者检查 .streamlit/secrets.toml 中的 server_metadata_url。
error-model = 模型“{ $model }”加载失败：{ $reason }
error-model-not-found = 找不到模型“{ $model }”。请检查设置（STEADY_CHAT_MODEL，或 steady_chat.toml 中的 [[models]]）中的路径或名称；日志中写明了查找的位置。
error-model-gone = 在查找的位置没有模型“{ $model }”。请选择其他模型；日志中写明了查找的位置。
error-not-a-model = 找到了“{ $model }”，但它不是可以加载的对话模型（{ $reason }）。
error-remote-code = 模型“{ $model }”需要运行它自带的代码。如果您信任它的作者，请设置 STEADY_CHAT_TRUST_REMOTE_CODE=true。
error-no-chat-template = 模型“{ $model }”没有对话模板，无法进行多轮对话。请改用名称中带“instruct”或“chat”的版本。
error-model-download = 模型“{ $model }”下载失败。请检查网络和 pip 的软件源设置，然后重试。
error-hub-download = 无法从 hub 获取模型“{ $model }”。请检查网络；镜像用 HF_ENDPOINT 指定，受限模型需要 HF_TOKEN。
error-download-corrupt = 下载的“{ $model }”文件已损坏，已删除。请重试。
error-disk-full = { $folder } 空间不足：需要 { $needed_mb } MB，只剩 { $free_mb } MB。请先清理出一些空间，然后重试。
error-missing-package = 这个模型需要软件包“{ $package }”。请用 pip 安装，然后重新启动应用。
error-loading-stopped = 已停止加载“{ $model }”。请重试，或加载其他模型。
error-out-of-memory = 内存不足，无法运行“{ $model }”。可以试试缩短对话、减少词元数、使用 4 位量化，或换一个更小的模型。
error-weights-too-large = 可用内存不足，无法加载“{ $model }”。请换一个更小的模型或使用 4 位量化，或释放一些内存，然后重新加载。
error-server-unreachable = { $url } 没有响应。服务器启动了吗？地址填对了吗？
error-server-host-unknown = 找不到主机“{ $host }”。请检查服务器地址（{ $url }）。
error-server-timeout = { $url } 在 { $seconds } 秒内没有应答，可能是负载过高或仍在启动，请稍后重试。
error-server-proxy-timeout = { $url } 前面的代理等不到回答，已放弃等待。服务器可能只是还在阅读较长的问题：请调高代理的读取超时（nginx 为 proxy_read_timeout），然后重试。
error-server-key = { $url } 不接受当前的 API 密钥。请设置正确的密钥：STEADY_CHAT_VLLM_API_KEY；如果配置了多个服务器，则设置该服务器名称旁的 api_key。
error-server-model-unknown = { $url } 上没有模型“{ $model }”。请在侧边栏另选一个，然后重新提问。默认模型在设置中指定：STEADY_CHAT_VLLM_MODEL，或该服务器名称旁的 model。
error-server-parameter = { $url } 不接受当前的 { $parameter }（“{ $reason }”）。请在侧边栏修改它，或者不发送它。
error-server-busy = { $url } 正忙，请稍后再试。
error-server-starting = { $url } 仍在启动：正在加载模型。
error-server-fault = { $url } 报告了服务器自身的故障。原因见服务器日志，请重试。
error-server-garbage = { $url } 返回的内容不符合 OpenAI 兼容协议。请确认地址以 /v1 结尾，并且中间没有登录页或代理。
error-connection-lost = 回答过程中与 { $url } 的连接断开了。已收到的内容会保留，请重试。
error-no-answer = 回答开始之前，与 { $url } 的连接就断开了。请重新提问。
error-store = 目前无法把对话保存到 { $place }。对话可以继续，一旦可用就会保存。
error-store-locked = { $place } 正被占用，暂时无法保存。对话可以继续，一旦可用就会保存。
error-store-full = { $place } 所在的磁盘已满，无法保存。对话可以继续；腾出空间后会自动保存。
error-store-read-only = { $place } 只能读取，无法保存。对话可以继续；请给本应用写入权限，之后会自动保存。
error-store-gone = 无法连接或打开 { $place }，因此无法保存。对话可以继续，恢复后会自动保存。
error-store-broken = { $place } 已损坏，或不是数据库，因此无法保存。请将它移走，或放回备份；对话可以继续。
error-store-newer = { $place } 由更新版本的 Steady Chat 创建。请更新本应用；在此之前无法保存。
error-store-fault = { $place } 拒绝了要保存的内容（{ $kind }）。详情见日志；对话可以继续，并会再次尝试保存。
error-conversation-gone = 这个对话已不在这里。请开始新的对话。
error-preset = 预设未保存：{ $reason }。
error-stalled = 连续 { $seconds } 秒没有收到新内容，回答已终止。已收到的内容会保留，请重试。
error-queue-full = 已有 { $limit } 个问题在排队，达到上限。请稍后再试。
error-too-many-waiting = 您已有 { $limit } 个问题在排队，达到上限。请停止其中一个，或等轮到其中一个，然后重新提问。
error-shutting-down = 应用正在停止，等它恢复后再提问。
error-server-tls = 无法信任 { $url } 的证书：证书可能是自签名的、已过期，或属于其他主机。请更换证书，或用 SSL_CERT_FILE 指定您自己的 CA 证书文件。
error-server-no-model = { $url } 上没有任何模型。请让服务器加载一个模型，或在 STEADY_CHAT_VLLM_MODEL 中指定模型名称。
error-import-file = 这个文件里没有可以读取的对话。请选择 Steady Chat、ChatGPT（conversations.json 或包含它的 ZIP）或 Open WebUI 导出的文件。
error-import-too-large = 文件超过了 { $limit } MB 的导入上限。请分批导出对话。
error-import-damaged = 文件已损坏或不完整，无法读取其中的内容。请重新导出或下载。
reason-not-an-address = 应为 http://127.0.0.1:8000/v1 这样的地址
reason-answer-too-long = 上下文窗口共 { $limit } 个词元，对话已占用 { $prompt_tokens } 个，放不下“最大词元数”那么长的回答。请调低最大词元数，或清空历史。
reason-file-missing = 文件不存在
reason-reading-failed = 无法读取该文件（{ $kind }）
reason-file-encoding = 该文件不是 UTF-8 编码的文本
reason-not-toml = 该文件不是有效的 TOML
reason-not-json = 该文件不是有效的 JSON
reason-unknown-entry = 没有这一项
reason-unknown-entry-nearest = 没有这一项。您是不是想写“{ $nearest }”？
reason-at-least = 不能小于 { $limit }
reason-more-than = 必须大于 { $limit }
reason-at-most = 不能大于 { $limit }
reason-whole-number = 必须是整数
reason-number = 必须是数字
reason-yes-or-no = 只能是 true 或 false
reason-one-of = 只能是以下之一：{ $allowed }
reason-text = 必须是文本
reason-empty = 不能为空
reason-missing = 缺少这一项
reason-value-not-json = 不是有效的 JSON
reason-hours = 小时数须大于 0，且不超过 100,000
reason-same-name = 名称“{ $name }”重复出现
reason-too-long = 最多 { $limit } 个字符
reason-list = 必须是列表
reason-stop-strings = 停止字符串最多 { $limit } 个，每个 1 到 { $chars } 个字符
reason-object = 必须是由键值对组成的对象
reason-database-url = 既不是 sqlite:///文件，也不是 postgresql+psycopg://用户:密码@主机/库名
reason-redis-url = 既不是 redis://…、rediss://…，也不是 unix://…，例如 redis://:密码@主机:6379/0
reason-no-backend = 至少要指定一个后端
reason-text-file = 应为文件名，并且不能与“text”同时使用
reason-needle = 应为要在问题中查找的文字，不能为空
reason-preset-unnamed = 请先填写名称
reason-preset-taken = 已经有名为“{ $name }”的预设
reason-preset-name-long = 名称最多 { $limit } 个字符
reason-preset-prompt-long = 系统提示词最多 { $limit } 个字符
reason-preset-many = 最多保存 { $limit } 个预设，请先删除一个
reason-not-valid = 该值无效
reason-scripted = 脚本就是这样写的
reason-import-entry = 不是 Steady Chat、ChatGPT 或 Open WebUI 的对话
reason-import-no-messages = 其中没有消息
reason-import-unreadable = 无法读取
reason-import-large = 超过 { $limit } 百万个字符
reason-import-damaged = 文件从此处起已损坏，后面的内容无法读取
reason-import-packed = ZIP 中的这个文件已损坏或设有密码
reason-import-unpacked = ZIP 中的文件解压后超过 { $limit } MB，其余部分未读取
reason-import-many = 每个文件最多读取 { $limit } 个对话
reason-import-branches = 其分支重复的文字过多
reason-import-cut = 其中有 { $count } 段超过 { $limit } 个字符的文字被截断
reason-import-left-out = 其中有 { $count } 个图片、录音或文件未能导入
reason-sign-in-missing = 登录功能需要它。请写入 .streamlit/secrets.toml（见 README 的“登录”一节），然后重新启动应用
reason-secret-short = 猜到它的人可以冒充任何人登录。至少要有 { $limit } 个随机字符，例如用 openssl rand -hex 32 生成
reason-callback = 必须是页面自己的地址加上 /oauth2callback，例如 https://chat.example.com/oauth2callback
reason-metadata-url = 必须是登录服务的元数据地址，通常以 /.well-known/openid-configuration 结尾
reason-provider-name = 登录服务的名称不能含下划线
reason-sign-in-package = 登录功能需要软件包 { $package }。请用 pip 安装，然后重新启动应用

## Page
app-title = Steady Chat
page-chat = 对话
page-setup = 当前配置
chat-welcome = 请提问。回答会逐步显示，页面照常可用。
chat-welcome-embedded = 请用英文提问：这是一个用来试用页面的小模型，不会中文。使用自己的模型请看 README。
chat-lost = 要找的对话不在这里：它已被删除，或者属于别人。
chat-input = 输入您的问题
chat-stop = 停止
chat-ask-again = 重试
chat-ask-again-without = 不带 { $parameter } 重试
chat-earlier = 显示更早的消息（{ $turns }）
turn-menu = 对这一轮的操作
turn-copy = 复制回答
turn-copy-question = 复制问题
turn-regenerate = 重新生成
turn-edit = 编辑问题
turn-continue = 继续
turn-delete = 删除这一轮
turn-deleted = 已删除这一轮。
variant-previous = 显示前一个版本（{ $at } / { $count }）
variant-next = 显示后一个版本（{ $at } / { $count }）
edit-label = 问题
edit-save = 保存
edit-cancel = 取消
export-menu = 导出
export-copy = 复制为 Markdown
export-markdown = 下载 Markdown
export-json = 下载 JSON
history-cleared = 历史已清空。
undo = 撤销
copy-done = 已复制
copy-by-hand = 浏览器不允许此页面复制。请从这里手动复制：
copy-close = 关闭
branch-elsewhere = 另一个分支中正在生成回答。
branch-show = 查看
answer-interrupted-before = 已中断：应用在回答之前被终止。
answer-interrupted = 已中断：生成此回答时应用被终止。
question-long = 长问题，共 { $chars } 个字符；模型会读到全部内容。
question-queued = 将在当前回答结束后提问。
question-withdraw = 撤回
answer-elsewhere = 正由本应用的另一个进程回答…
answer-stopping = 正在停止……
queue-place = { $place ->
    [1] 下一个就轮到您
   *[other] 排在第 { $place } 位
}
answer-waiting = { queue-place }……
answer-waiting-model = { queue-place }，模型正在准备（{ $phase }）……
answer-waiting-seconds = { queue-place }，大约还需 { $seconds } 秒……
answer-waiting-minutes = { queue-place }，大约还需 { $minutes } 分钟……
answer-waiting-soon = { queue-place }，马上就到……
answer-preparing = 模型正在准备（{ $phase }）；准备好后立即回答您的问题。
answer-reading = 正在阅读问题……{ $seconds } 秒
notice-reading = 正在阅读问题……{ $seconds } 秒（最多约 { $about } 秒）
notice-reading-part = 正在阅读问题……{ $percent }%
notice-busy = { $server } 正忙，{ $left } 秒后再次请求（第 { $try } 次）
notice-away = { $why }您的问题正在等待服务器……{ $seconds } 秒。按“停止”可结束等待。
notice-joined = 刚刚有人问了同一个问题，将显示该回答…… { $seconds } 秒
notice-next = { $server } 不可用（{ $why }）正在请求 { $next }……{ $seconds } 秒
reasoning-thinking = 正在思考……
reasoning-seconds = { $seconds } 秒
reasoning-thought = { $seconds ->
    [0] 思考了片刻
   *[other] 思考了 { $seconds } 秒
}
answer-empty = 模型没有输出任何内容就结束了。
answer-only-reasoning = 模型还在思考时就结束了：没有给出回答，只有上方的思考过程。
answer-only-reasoning-length = 模型还在思考时就达到了词元上限：没有给出回答，只有上方的思考过程。请调大“最大词元数”。
finish-stop = 已完成
finish-length = 达到词元上限，已截断
finish-abort = 已停止
finish-error = 失败
finish-not-begun = 未开始就已停止
finish-model-changed = 已停止：有人为所有人换用了“{ $model }”
finish-interrupted = 已中断
receipt-tokens = { $tokens } 个词元
receipt-ttft = 首字用时 { NUMBER($seconds, minimumFractionDigits: 2, maximumFractionDigits: 2) } 秒
receipt-speed = 每秒 { NUMBER($speed, maximumFractionDigits: 1) } 个词元
receipt-freeze = 最长卡顿 { NUMBER($seconds, minimumFractionDigits: 2, maximumFractionDigits: 2) } 秒
receipt-waited = 等待 { $seconds } 秒
receipt-left-out = 最早的 { $questions } 轮对话已超出模型的上下文窗口，未发送给模型
receipt-system-prompt = 系统提示词不同

## 对话列表
list-new = 新对话
list-search = 搜索对话
list-pinned = 已置顶
list-today = 今天
list-yesterday = 昨天
list-empty = 还没有提过问题。
list-nothing-found = 没有找到。所有词须同在一个标题中，或同在一次问答中。
list-untitled = 无标题
list-more = 显示更多
list-menu = 更多
list-rename = 重命名
list-pin = 置顶
list-unpin = 取消置顶
list-delete = 删除
list-undo = 撤销删除“{ $title }”

## Sidebar
sidebar-backend = 后端
backend-local = 本地
backend-vllm = vLLM
backend-scripted = 脚本演示
model-unnamed = 模型
phase-idle = 未启动
phase-draining = 正在等待进行中的回答结束
phase-fetching = 正在获取模型
phase-converting = 正在转换（仅一次）
phase-loading = 正在加载
phase-warming = 正在预热
phase-asking = 正在连接服务器
phase-ready = 就绪
phase-unloaded = 不在内存中，下次提问时加载
phase-failed = 不可用
phase-starting = 正在启动
phase-unreachable = 无法连接，正在重新尝试
phase-wrong-key = API 密钥不正确
sidebar-model = 模型
sidebar-model-gone = { $server } 目前没有列出这个模型。
models-help = 设置中列出的模型、模型文件夹中的模型，以及 hub 缓存中的模型（设置可将其排除）。内存中只有一个模型，由所有使用本页面的人共用。
model-load = 加载
model-load-anyway = 仍然加载
model-load-after = 等这 { $answers } 个回答结束后加载
model-load-now = 停止这 { $answers } 个回答并加载
model-leave = 保持不变
model-cancel = 取消
model-mark-half = 未下载完
model-mark-trouble = 无法使用
model-mark-short = 只够短对话
model-mark-no = 内存不足
model-trouble = “{ $name }”无法使用：{ $why }。
model-trouble-half = “{ $name }”：{ $why }。
model-takes = “{ $name }”约需 { $needed }：权重 { $weights }，占满窗口（{ $tokens } 个词元）的对话 { $context }。
model-takes-weights = “{ $name }”的权重约需 { $weights }。
model-unknown = 下载之后才知道“{ $name }”需要多少内存。
model-fits = 可用 { $free }，放得下。
model-short = 可用 { $free }，放得下约 { $tokens } 个词元以内的对话。
model-no = 可用 { $free }，放不下。
model-many = 最多同时回答 { $slots } 个问题；若都占满窗口则需 { $needed }，因此较长的对话可能要互相等待。
model-cost = 加载它会先为所有人释放当前模型。如果内存不够，就要重新加载原来的模型，提问的人得等两次。
model-converts-beside = 会先转换一次（仅一次），其间照常回答问题。
model-converts-alone = 会先转换一次（仅一次）。内存不足以同时容纳两者，其间无法回答任何问题。
model-meanwhile = 其间由“{ $name }”回答。
model-shared = 这里的所有人共用一个模型。
model-for-all = 这里的所有人共用一个模型；加载它之前会先释放“{ $name }”。
model-running = 有 { $answers } 个回答正在进行。
model-waiting = 有 { $questions } 个问题正在等待，将由新模型回答。
model-batched = 最多同时回答 { $slots } 个问题（合为一批）。
model-side-by-side = 最多同时回答 { $slots } 个问题（各自生成）。
model-note = 提示：{ $why }。
model-stopped = 已停止加载“{ $model }”。
model-went-back = { $why }已恢复使用“{ $back }”。
sidebar-retry = 重试
preset = 预设
preset-none = 不使用预设
preset-changed = 预设 · 已更改
preset-manage = 编辑
preset-name = 预设名称
preset-new = 存为新预设
preset-update = 保存更改
preset-revert = 撤销更改
preset-rename = 重命名
preset-usual = 用于新对话
preset-unusual = 不再用于新对话
preset-delete = 删除
preset-undo = 恢复刚删除的预设
sidebar-system-prompt = 系统提示词
sidebar-system-prompt-hint = 希望模型如何表现
sidebar-temperature = 温度
sidebar-temperature-help = 取 0 时总是选择概率最高的词；数值越大，变化越多。
sidebar-top-p = Top-p
sidebar-top-p-help = 只考虑累计概率达到该比例的最可能的词。
sidebar-max-tokens = 最大词元数
sidebar-seed = 随机种子
sidebar-seed-hint = 随机
sidebar-seed-help = 相同的种子和问题会得到相同的回答。
sidebar-more = 更多参数
sidebar-default-hint = 默认
sidebar-not-sent = { $parameter }（不发送）
sidebar-not-sent-help = 由服务器自己决定。可在“更多参数”的“不发送”中更改。
sidebar-top-k = Top-k
sidebar-top-k-help = 只考虑概率最高的这么多个词；0 表示全部。留空使用模型自带的值。
sidebar-min-p = Min-p
sidebar-min-p-help = 概率低于最高概率的这一比例的词不予考虑；0 表示不限制。留空使用模型自带的值。
sidebar-repetition-penalty = 重复惩罚
sidebar-repetition-penalty-help = 大于 1 时，对话中出现过的词更难再次出现；1 表示不变。留空使用模型自带的值。
sidebar-presence-penalty = 存在惩罚
sidebar-presence-penalty-help = 大于 0 时，回答中已出现过的词更难再次出现。
sidebar-frequency-penalty = 频率惩罚
sidebar-frequency-penalty-help = 大于 0 时，词在回答中每出现一次，就更难再次出现。
sidebar-stop = 停止字符串
sidebar-stop-hint = 每行一个
sidebar-stop-help = 回答在遇到其中任何一个之前结束。每行一个，最多 4 个；\n 表示换行。
sidebar-left-out = 不发送
sidebar-left-out-help = 用于不接受该参数的服务器，此时由服务器自己决定。上面留空的项同样不会发送。
sidebar-clear = 清空历史
clear-question = 确定删除此对话的 { $turns } 组问答吗？
clear-yes = 删除

## 回答缓存
cache-label = 回答缓存：{ $mode }
cache-mode = 重复使用回答
cache-mode-off = 关闭
cache-mode-off-help = 每次都询问模型。
cache-mode-exact = 完全相同
cache-mode-exact-help = 同一模型、同一设置下完全相同的问题，立即给出已有的回答。
cache-mode-similar = 完全相同与相似
cache-mode-similar-help = 换一种说法问同一件事也算。有疑问时一律询问模型。
cache-fresh = 重新回答
cache-fresh-help = 下一个问题交给模型，新的回答会取代已保存的回答。
cache-random = 也使用随机生成的回答
cache-random-help = 温度高于 0 且没有随机种子时，模型每次的回答都会不同。打开后仍使用已保存的回答。
cache-in-trouble = 缓存暂时无法使用：所有问题都交给模型。
cache-not-done = 未能完成：缓存暂时无法使用，请稍后再试。
cache-ask-anyway = 仍然询问模型
cache-wrong = 匹配错误
cache-wrong-help = 您的问题并不是那个问题：这一匹配会被移除，与它相近的问题今后需要更高的相似度，并立即询问模型。
page-cache = 回答缓存
cache-explain = 自行完成的回答会被保存，再次遇到完全相同的问题时直接给出；侧边栏允许时，换一种说法问同一件事也算。除非本站设为共享，回答只属于各自的账户；未启用登录时，所有打开本页的人同属一个账户。
cache-report = 使用情况
cache-no-questions = 自清空缓存以来还没有提过问题。
cache-share = { NUMBER($share, style: "percent", maximumFractionDigits: 0) }
cache-count-exact = 完全相同
cache-exact-count = { $count } 个问题与以前的完全相同。
cache-count-similar = 相似
cache-similar-count = { $count } 个问题换了说法，问的是同一件事。
cache-count-missed = 未命中
cache-missed-count = { $count } 个问题由模型回答，可保存的回答已保存。
cache-count-refused = 从不缓存
cache-refused-count = { $count } 个问题完全不使用缓存，原因见下。
cache-saved = { NUMBER($questions) } 个问题；节省 { NUMBER($tokens) } 个词元和 { NUMBER($seconds) } 秒生成时间。
cache-label-fresh = 下一个重新回答
cache-similar-none = 未设置嵌入模型：只能找到完全相同的问题。
cache-similar-loading = 查找相似问题的嵌入模型正在准备，首次使用需下载 84 MB。在此之前只能找到完全相同的问题。
cache-similar-ready = 已就绪。内置的嵌入模型只懂英语；中文等其他语言需要另设模型（见 README）。
cache-similar-failed = 目前无法查找相似问题，只能找到完全相同的问题。原因见日志。
cache-count-fresh = 仍询问模型
cache-fresh-count = { $count } 个问题特意交给了模型。
cache-miss-reasons = 未查找或太迟：{ $reasons }
cache-reason-unknown-model = 模型尚未就绪
cache-reason-late = 模型更快
cache-reason-not-ready = 尚不能查找相似问题
cache-reason-unread = 嵌入模型不懂的语言
cache-reasons = 不缓存的原因：{ $reasons }
cache-reason-count = { $reason }（{ $count }）
cache-reason-random = 随机生成，没有种子
cache-reason-now = 关于当下
cache-reason-creative = 要求新的内容
cache-reason-personal = 涉及个人
cache-reason-long = 过长
cache-reason-empty = 为空
cache-near = 险些命中
cache-near-explain = 这些问题看上去相近，因有疑问未予采用，而是询问了模型。您的判断会记入日志，供调整使用。
cache-near-why = 相似度 { NUMBER($similarity, minimumFractionDigits: 2, maximumFractionDigits: 2) }
cache-same = 是同一问题
cache-different = 不是同一问题
cache-entries = 已保存的回答
cache-empty = 还没有。
cache-totals = { NUMBER($entries) } 个回答，{ $size }
cache-size = { NUMBER($size, maximumFractionDigits: 0) } KB
cache-hits = { $count ->
    [0] 尚未使用
   *[other] 已使用 { $count } 次
}
cache-forget = 移除
cache-more = 显示更多
cache-clear = 清空
cache-clear-model = 模型
cache-any-model = 任意模型
cache-clear-age = 时间
cache-age-any = 不限
cache-age-hour = 一小时以前
cache-age-day = 一天以前
cache-age-week = 一周以前
cache-clear-button = 移除回答
cache-clear-question = 移除以上所选的回答？
cache-clear-all-question = 移除所有回答和日志？此操作无法撤销。
cache-cleared = { $count ->
    [0] 没有可移除的回答。
   *[other] 已移除 { NUMBER($count) } 个回答。
}
cache-export = 决策日志
cache-export-help = 每个决策一行 JSON：问了什么、与什么比较、如何决定以及原因。
receipt-cached-exact = 来自缓存，完全相同
receipt-cached-similar = 来自缓存，相似问题：“{ $question }”
receipt-age-new = 刚刚
receipt-age-minutes = { $count } 分钟前
receipt-age-hours = { $count } 小时前
receipt-age-days = { $count } 天前

## Signing in
sign-in-explain = 登录后即可查看你的对话。
sign-in = 登录
sign-in-with = 用 { $provider } 登录
sign-out = 退出登录
signed-in-as = 已登录：{ $name }

## Getting the model ready
step-draining = 等待进行中的回答结束
step-fetching = { $megabytes ->
    [0] 获取模型（仅首次）
   *[other] 获取模型（{ $megabytes } MB，仅首次）
}
step-converting = 转换模型（仅首次）
step-loading = 加载模型
step-warming = 预热模型
step-elapsed = { $seconds } 秒

## This installation
setup-explain = 当前生效的设置。可通过同名环境变量、.env 文件，或 steady_chat.toml（去掉前缀并用小写）来修改。
setup-name = 设置项
setup-value = 值

## Conversations, all together
page-archive = 对话管理
archive-waiting = 正在等待另一个导入完成…
archive-export = 导出
archive-count = { $count ->
    [0] 还没有对话。
   *[other] 共 { $count } 个对话，包括其他分支和回答。
}
archive-json = 全部内容（JSON）
archive-json-help = 可以再次导入到这里或其他地方。
archive-markdown = 便于阅读（Markdown 压缩包）
archive-markdown-help = 每个对话一个文件，包含当前显示的分支。
archive-file = 对话-{ $date }
archive-import = 导入
archive-import-explain = 支持 Steady Chat、ChatGPT（conversations.json 或包含它的 ZIP）和 Open WebUI 导出的文件。已有的对话保持不变。
archive-upload = 选择文件，或拖放到这里
archive-upload-button = 选择文件
archive-upload-limit = 每个文件不超过 { $limit } MB：JSON 或 ZIP
archive-import-begin = { $count ->
   *[other] 导入 { $count } 个文件
}
archive-reading = 正在读取 { $file } …
archive-importing = { $file }：{ $taken } / { $found } …
archive-report-added = { $count ->
    [0] 没有导入新对话
   *[other] 导入了 { $count } 个对话
}
archive-report-known = { $count ->
   *[other] { $count } 个已经存在
}
archive-report-restored = { $count ->
   *[other] { $count } 个曾被删除，现已恢复
}
archive-report-left-out = { $count ->
   *[other] { $count } 个无法读取
}
archive-problem-row = 条目
archive-problem-title = 对话
archive-problem-what = 无法读取的内容
archive-problem-partly = 已导入，但{ $reason }
archive-problem-left-out = 未导入：{ $reason }
archive-problem-more = { $count ->
   *[other] ……另有 { $count } 条。
}
archive-report-again = 届时请再次导入该文件：已导入的内容会保留，不会重复。
archive-report-close = 关闭报告
archive-deleted = 已删除
archive-deleted-none = 没有已删除的对话。
archive-deleted-explain = { $days ->
   *[other] 删除的对话在 { $days } 天内可以恢复，之后会被彻底删除。
}
archive-deleted-on = 删除于 { $date }
archive-restore = 恢复
archive-for-good = 彻底删除
archive-for-good-question = 彻底删除后无法恢复。
archive-more = 显示更多

## Export
export-question = 问题
export-answer = 回答
export-reasoning = 思考过程
export-untitled = 对话
export-error = 错误：{ $reason }

## Reasons: local models
reason-no-chat-template = 它没有对话模板，无法进行对话；请选择 “instruct” 或 “chat” 版本
reason-not-there = 这个路径或名称下没有模型；请检查设置（STEADY_CHAT_MODEL，或 steady_chat.toml 中的 [[models]]）
reason-no-config = 文件夹里没有 config.json
reason-config-unreadable = 无法读取它的 config.json
reason-config-without-type = 它的 config.json 没有写明模型类型
reason-no-weights = 其中没有 .safetensors 格式的权重
reason-only-bin-weights = 它只有 .bin 格式的权重，这种文件在读取时可能运行代码；请另存为 .safetensors 格式
reason-neither-folder-nor-gguf = 既不是文件夹，也不是 .gguf 文件
reason-file-unreadable = 无法读取该文件
reason-not-gguf = 不是 GGUF 文件
reason-embedding-modules = 它的文件夹除 transformer 和一种池化方式之外还要求别的步骤，本应用不支持
reason-licence = 需要先在 Hugging Face Hub 上接受它的许可协议，并设置 HF_TOKEN
reason-weights-damaged = 它的权重已损坏或不完整
reason-no-numbers = 用它的权重算不出有效的数值：权重已损坏，或需要另一种数值类型（STEADY_CHAT_DTYPE）
reason-weights-missing = 它缺少一部分权重
reason-unknown-type = transformers 不支持这种类型的对话模型
reason-tokenizer-unreadable = 无法读取它的分词器
reason-part-unreadable = 它有一个文件无法读取
reason-no-batching = 它不支持批量生成多个回答，而 STEADY_CHAT_BATCHING=on 要求批量生成；设为“auto”则会逐个生成
reason-no-thread = 系统不允许应用再启动新的线程
reason-folder-not-writable = 无法写入文件夹 { $folder }
reason-gguf-damaged = GGUF 文件已损坏，或属于无法读取的类型
reason-gguf-not-converted = 无法转换这个 GGUF 文件
reason-gguf-split = 它被拆分成了多个 GGUF 文件，请先合并
reason-half-downloaded = 只下载了一部分，加载时会下载其余部分
reason-folder-missing = 没有这个文件夹
reason-conversion-stalled = 转换过程停滞了 { $minutes } 分钟，已被终止
reason-template-empty = 模型的对话模板由它生成了空的提示词
reason-template-refuses = 模型的对话模板拒绝了它（“{ $says }”）
reason-flash-not-installed = 未使用 flash attention：没有安装 flash-attn 包
reason-flash-no-gpu = 未使用 flash attention：模型不在支持它的 GPU 上运行
reason-flash-not-supported = 未使用 flash attention：这种类型的模型不支持它
reason-flash-number-type = 未使用 flash attention：它需要 bfloat16 或 float16 数值类型
reason-flash-refused = 未使用 flash attention：它无法在这个 GPU 上工作

context = 上下文
context-exact = 上下文：{ $tokens } / { $window } 个词元
context-about = 上下文：约 { $tokens } / { $window } 个词元
context-no-window-exact = 上下文：{ $tokens } 个词元
context-no-window-about = 上下文：约 { $tokens } 个词元
context-full = 模型的上下文窗口（{ $window } 个词元）已满：回答下一个问题时将略去最早的对话，以腾出空间。

## Details of an answer
turn-details = 详细数据
details-waited = 等待轮到并等待模型
details-prompt = 提示词
details-ttft = 读取提示词（TTFT）
details-reasoning = 思考
details-decode = 写出回答
details-speed = 速度
details-itl = 片段间隔（ITL）
details-itl-values = p50 { NUMBER($p50, maximumFractionDigits: 0) } 毫秒，p95 { NUMBER($p95, maximumFractionDigits: 0) } 毫秒
details-screen = 屏幕
details-unseen = 没有人看到结束
details-frames = 绘制帧数
details-frames-values = { NUMBER($frames) }
details-sent = 发送到浏览器的文本
details-kb = { NUMBER($size, maximumFractionDigits: 1) } kB
details-longest-freeze-ms = 最长卡顿
details-inp-ms = 对按键或点击的最慢响应（INP）
details-blocked-ms = 输入被阻塞的总时间
details-lag-ms = 结束时屏幕落后
details-ms = { NUMBER($value, maximumFractionDigits: 0) } 毫秒
details-seconds = { NUMBER($seconds, minimumFractionDigits: 2, maximumFractionDigits: 2) } 秒
details-flight = 时间记录文件
details-flight-help = 每个片段到达和每一帧发出的时间，不含任何文字。可以重放：见文档中的“flight_file”。
details-hide = 隐藏
reason-flight-file = 应为文件名，并且不能与“schedule”同时使用
