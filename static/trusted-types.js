// Strings become HTML in only one way: htmx parses our responses into a separate document. `innerHTML = text` throws.
"use strict";

if (window.trustedTypes) {
  const isParser = /parseHTMLUnsafe|parseFromString/;
  trustedTypes.createPolicy("default", { createHTML: (html, type, sink) => (isParser.test(sink) ? html : null) });
}
