// The scripts of Django admin (jQuery, select2, inlines) write small pieces of HTML as text. A piece is allowed when it
// contains only these elements and attributes, none of which runs, loads or sends anything.
"use strict";

if (window.trustedTypes) {
  const ELEMENTS = new Set(
    "a b div form input label li option p select span strong table tbody td textarea th thead tr ul".split(" ")
  );
  const ATTRIBUTES = new Set(
    ("autocapitalize autocomplete autocorrect class colspan dir disabled for href id name role selected spellcheck"
      + " tabindex title type value").split(" ")
  );
  let isLooking = false;

  // In a template element, table rows are parsed as such; its content is never part of a page.
  const parsed = (html) => {
    isLooking = true;
    try {
      return new DOMParser().parseFromString(`<template>${html}</template>`, "text/html");
    } finally {
      isLooking = false;
    }
  };
  const isHere = (address) => new URL(address, location.href).origin === location.origin;
  const mayStand = ({ name, value }) =>
    (ATTRIBUTES.has(name) || name.startsWith("aria-")) && (name !== "href" || isHere(value));
  const isHarmless = (html) => {
    const { head, body } = parsed(html);
    if (head.childNodes.length !== 1 || body.hasChildNodes()) return false;
    return [...head.firstChild.content.querySelectorAll("*")].every(
      (element) => ELEMENTS.has(element.localName) && [...element.attributes].every(mayStand)
    );
  };

  trustedTypes.createPolicy("default", { createHTML: (html) => (isLooking || isHarmless(html) ? html : null) });
}
