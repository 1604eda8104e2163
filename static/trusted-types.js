// Strings become HTML in one way: htmx parses an answer of ours into a document of its own. `innerHTML = text` throws.
"use strict";

if (window.trustedTypes) {
  const isParser = /parseHTMLUnsafe|parseFromString/;
  trustedTypes.createPolicy("default", { createHTML: (html, type, sink) => (isParser.test(sink) ? html : null) });
}
