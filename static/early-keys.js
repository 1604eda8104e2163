// Keys pressed while a page still loads, until app.js acts on them. Not deferred: it listens before anything is shown.
"use strict";

const earlyKeys = [];

function keepKey(event) {
  earlyKeys.push(event);
}

document.addEventListener("keydown", keepKey);
