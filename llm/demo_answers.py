"""What the scripted backend says when nobody wrote it a script: a short tour of Markdown."""

from __future__ import annotations

ENGLISH = """\
## A scripted answer

You asked: {question}

No model is behind this answer. It is read aloud at a steady pace, so that you can see how the \
page behaves **while text arrives**: scroll, open another page, or press *Stop*.

### What a page has to draw

1. paragraphs with **bold**, *italic* and `code`
2. lists
   - with lists inside
   - and [links](https://commonmark.org/help/)
3. everything that follows

| part | what it does | how often |
| --- | --- | ---: |
| job | collects the text | once a token |
| pacer | decides when to draw | once a frame |
| page | draws what changed | 10–20 a second |

```python
def mean_gap_ms(arrivals_s: list[float]) -> float:
    \"\"\"The mean time between two tokens, in milliseconds.\"\"\"
    gaps_s = [late - early for early, late in zip(arrivals_s, arrivals_s[1:])]
    return 1000 * sum(gaps_s) / len(gaps_s)
```

A formula in the line, $e^{i\\pi} + 1 = 0$, and one that stands alone:

$$
\\int_0^1 x^2 \\, dx = \\frac{1}{3}
$$

> The screen may skip a frame. It never skips a word.

That is all. Choose another backend in the sidebar to talk to a real model.
"""

CHINESE = """\
## 一段预先写好的回答

您的问题是：{question}

这段回答背后没有模型。它按固定的速度逐字播放，方便您观察**文字不断到来时**页面的表现：\
可以滚动、切换到其他页面，或者点击*停止*。

### 页面需要绘制的内容

1. 带有**粗体**、*斜体*和 `代码` 的段落
2. 列表
   - 列表里还可以有列表
   - 以及[链接](https://commonmark.org/help/)
3. 下面的所有内容

| 部分 | 作用 | 频率 |
| --- | --- | ---: |
| 任务 | 收集文字 | 每个词元一次 |
| 节拍器 | 决定何时绘制 | 每帧一次 |
| 页面 | 绘制有变化的部分 | 每秒 10–20 次 |

```python
def mean_gap_ms(arrivals_s: list[float]) -> float:
    \"\"\"相邻两个词元之间的平均间隔，单位为毫秒。\"\"\"
    gaps_s = [late - early for early, late in zip(arrivals_s, arrivals_s[1:])]
    return 1000 * sum(gaps_s) / len(gaps_s)
```

行内公式 $e^{i\\pi} + 1 = 0$，以及单独成行的公式：

$$
\\int_0^1 x^2 \\, dx = \\frac{1}{3}
$$

> 画面可以跳过一帧，但绝不会漏掉一个字。🙂

演示到此结束。想和真正的模型对话，请在侧边栏切换后端。
"""
