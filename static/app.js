// Theme, keys, menus and toasts. Every page works without this file.
"use strict";

const root = document.documentElement;
const KEYS_OFF = "memadmin-keys-off";

document.addEventListener("click", (event) => {
  if (event.target.closest("[data-theme-toggle]")) switchTheme();
  const toggler = event.target.closest("a.navbar-toggler");
  if (toggler) {
    event.preventDefault();
    const isOpen = document.getElementById("nav").classList.toggle("show");
    toggler.setAttribute("aria-expanded", String(isOpen));
  }
  event.target.closest("[data-close]")?.closest(".toast-static")?.remove();
  for (const menu of document.querySelectorAll("details.menu[open]")) {
    if (!menu.contains(event.target)) menu.open = false;
  }
});

// The same name under which Tabler's theme script looks for it.
function switchTheme() {
  const theme = root.dataset.bsTheme === "dark" ? "light" : "dark";
  root.dataset.bsTheme = theme;
  localStorage.setItem("tabler-theme", theme);
}

// ---- keys ----
// A key clicks the visible control with that data-key; "g s" is two keys one after the other. Nothing happens while a
// field has focus, and users can switch the keys off.

let leader = "";
let leaderTimer = 0;

function onKey(event, isEarly = false) {
  if ((event.ctrlKey || event.metaKey) && event.key === "k" && palette) {
    event.preventDefault();
    return palette.open ? palette.close() : openPalette();
  }
  if (event.target.matches("[data-suggest]") && moveInSuggestions(event)) return;
  if (submitBy(event)) return;
  if (event.key === "Escape") return closeMenu(event.target);
  if (event.ctrlKey || event.metaKey || event.altKey || localStorage.getItem(KEYS_OFF)) return;
  // A held key moves on; it decides nothing.
  if (event.repeat && !movements[event.key]) return;
  if (event.target.closest("input:not([type=checkbox]), textarea, select, [contenteditable]")) return;
  const key = leader ? `${leader} ${event.key}` : event.key;
  leader = "";
  clearTimeout(leaderTimer);
  if (key === "g") {
    leader = "g";
    leaderTimer = setTimeout(() => { leader = ""; }, 1200);
    return;
  }
  const movement = movements[key];
  if (movement) return movement();
  const control = [...document.querySelectorAll("[data-key]")].find(
    (node) => node.dataset.key === key && isShown(node) && isInReach(node),
  );
  // Nobody decides about a page before it was there.
  if (!control || (isEarly && control.type === "submit")) return;
  event.preventDefault();
  // Selected, so that the next search replaces the one that Back left in the field.
  if (control.matches("input")) control.select();
  else control.click();
}

// Begins to act on keys when the page and htmx are ready: first on those that early-keys.js kept, in their order. Tests
// wait for `data-listening`.
document.addEventListener("DOMContentLoaded", () => {
  document.removeEventListener("keydown", keepKey);
  earlyKeys.splice(0).forEach(onEarlyKey);
  document.addEventListener("keydown", (event) => onKey(event));
  root.dataset.listening = "";
});

// An earlier key may have focused a field or a link since: then text goes into the field, and Enter opens the link.
function onEarlyKey(event) {
  const focused = document.activeElement;
  const isField = focused.matches("input[type=search], input[role=combobox]");
  const isLink = focused.matches("a") && event.key === "Enter";
  if (focused === event.target || !(isField || isLink)) return onKey(event, true);
  if (isLink) focused.click();
  else if (event.key === "Enter") focused.form.requestSubmit();
  else if (event.key.length === 1 && !event.ctrlKey && !event.metaKey && !event.altKey) {
    focused.setRangeText(event.key, focused.selectionStart, focused.selectionEnd, "end");
    focused.dispatchEvent(new InputEvent("input", { bubbles: true }));
  }
}

const movements = {
  j: () => stepRow(1),
  k: () => stepRow(-1),
  x: () => focusedRow()?.querySelector("input[type=checkbox]")?.click(),
  n: () => stepRun(1),
  p: () => stepRun(-1),
  o: () => toggleDetails(),
};

// The sidebar is collapsed on phones, and its keys still work.
function isShown(node) {
  return node.checkVisibility({ visibilityProperty: true }) || Boolean(node.closest("#nav"));
}

// While a dialog is open, keys do not act on the page behind it.
function isInReach(node) {
  const question = document.querySelector("[popover]:popover-open");
  return !question || question.contains(node) || node.getAttribute("popovertarget") === question.id;
}

// Focus returns to where it was when the menu opened: its own button, or another place if a key opened it.
const openedFrom = new WeakMap();

document.addEventListener("toggle", ({ target: menu }) => {
  if (!menu.matches("details.menu") || !menu.open) return;
  const from = document.activeElement;
  if (from !== document.body && !menu.contains(from)) openedFrom.set(menu, from);
  else openedFrom.delete(menu);
}, true);

function closeMenu(target) {
  // What had focus in a menu may be gone since.
  const menu = target.closest("details.menu[open]") ?? document.querySelector("details.menu[open]");
  if (!menu) return;
  menu.open = false;
  (openedFrom.get(menu) ?? menu.querySelector("summary")).focus();
}

// Ctrl+Enter in a text area submits its form, by the button that Enter would press.
function submitBy(event) {
  if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey) || event.repeat) return false;
  if (!event.target.matches("textarea") || !event.target.form) return false;
  event.preventDefault();
  const { form } = event.target;
  form.requestSubmit([...form.elements].find((control) => control.type === "submit" && isShown(control)));
  return true;
}

// ---- focus after an undo ----
// The page that follows begins where the person was: at the same element, if it is still there.

const UNDONE_AT = "memadmin-undone-at";
const DONE_BY = "memadmin-done-by";
let lastFocus = null;

// A selector for the element, also on the next page; empty without one.
function placeOf(element) {
  const { id, name, value, form } = element;
  const href = element.getAttribute("href");
  const label = element.getAttribute("aria-label");
  if (id) return `#${CSS.escape(id)}`;
  if (href) return `#main a[href="${CSS.escape(href)}"]`;
  if (name) return `#main [name="${CSS.escape(name)}"][value="${CSS.escape(value)}"]`;
  if (form) return `#main form[action="${CSS.escape(form.getAttribute("action"))}"] [type="${CSS.escape(element.type)}"]`;
  return label ? `#main [aria-label="${CSS.escape(label)}"]` : "";
}

document.addEventListener("focusin", ({ target }) => {
  if (target.closest("#main") && !target.closest(".undo, .toasts")) lastFocus = target;
});

document.addEventListener("submit", ({ target: form, submitter }) => {
  if (!form.closest(".undo, .toasts")) {
    // If its page is loaded anew and the person does nothing else there, its undo leads back to this button.
    return sessionStorage.setItem(DONE_BY, submitter ? placeOf(submitter) : "");
  }
  const place = lastFocus?.isConnected ? placeOf(lastFocus) : sessionStorage.getItem(DONE_BY);
  if (place) sessionStorage.setItem(UNDONE_AT, place);
});

{
  const place = sessionStorage.getItem(UNDONE_AT);
  sessionStorage.removeItem(UNDONE_AT);
  if (place) document.querySelector(place)?.focus();
}

// A part that refreshes itself keeps the focus within it, and waits while somebody fills in a form of it.
const FIELDS = "input:not([type=hidden]), select, textarea";
let focusedIn = "";

function isFilledIn(field) {
  const options = [...(field.options ?? [])];
  if (options.some((option) => option.defaultSelected)) {
    return options.some((option) => option.selected !== option.defaultSelected);
  }
  return field.value !== (field.defaultValue ?? field.value) || Boolean(field.checked) !== Boolean(field.defaultChecked);
}

// Not what a person did, nor the suggestions for a field, which have no event either.
function isRefresh({ elt, triggeringEvent }) {
  return !triggeringEvent && elt.matches("[hx-trigger*=every]");
}

document.addEventListener("htmx:beforeRequest", (event) => {
  if (!isRefresh(event.detail.requestConfig)) return;
  const fields = [...event.target.querySelectorAll(FIELDS)];
  if (fields.some((field) => field === document.activeElement || isFilledIn(field))) event.preventDefault();
});
document.addEventListener("htmx:beforeSwap", ({ detail }) => {
  // Another part may be refreshed before this one has settled.
  const isWithin = detail.target.contains(document.activeElement);
  if (isWithin && isRefresh(detail.requestConfig)) focusedIn = placeOf(document.activeElement);
});
document.addEventListener("htmx:afterSettle", () => {
  if (focusedIn && document.activeElement === document.body) {
    document.querySelector(focusedIn)?.focus({ preventScroll: true });
  }
  focusedIn = "";
});

// A form that came back begins at its first mistake, which may be far below the top of the page.
Array.from(document.querySelectorAll("main [aria-invalid=true]")).find(isShown)?.focus();

function focusedRow() {
  return document.activeElement.closest("[data-row]");
}

function stepRow(by) {
  const rows = [...document.querySelectorAll("[data-row]")];
  const at = rows.indexOf(focusedRow() ?? document.querySelector("[data-row][aria-current]"));
  const row = rows[Math.min(rows.length - 1, Math.max(0, at + by))];
  if (row) (row.matches("a") ? row : row.querySelector("a"))?.focus();
}

// Vertical position of a run's head after scrolling: below the sticky bars.
const READING_LINE = 120;

function stepRun(by) {
  const heads = [...document.querySelectorAll(".tl-run")];
  const top = (node) => node.getBoundingClientRect().top;
  const at = heads.indexOf(document.activeElement);
  const ahead = () => heads.find((head) => top(head) > READING_LINE + 1);
  const behind = () => heads.findLast((head) => top(head) < READING_LINE - 1);
  const head = at >= 0 ? heads[at + by] : by > 0 ? ahead() : behind();
  if (!head) return;
  window.scrollBy({ top: top(head) - READING_LINE, behavior: "instant" });
  head.tabIndex = -1;
  head.focus({ preventScroll: true });
}

// The details of the focused item, else of the first item after a focused run's head, else of the first visible item.
function toggleDetails() {
  const hasDetails = (item) => item.querySelector("details.disc");
  const isInSight = (item) => item.getBoundingClientRect().bottom > READING_LINE;
  const items = [...document.querySelectorAll(".tl-item")].filter(hasDetails);
  const head = document.activeElement.closest(".tl-run");
  const isAfter = (item) => head.compareDocumentPosition(item) & Node.DOCUMENT_POSITION_FOLLOWING;
  const item = document.activeElement.closest(".tl-item") ?? items.find(head ? isAfter : isInSight);
  const details = item && hasDetails(item);
  if (!details) return;
  details.open = !details.open;
  details.querySelector("summary").focus({ preventScroll: true });
}

// ---- command palette ----
// The server finds the options; focus stays in the field, and arrows choose one (pattern "combobox" of ARIA).

const palette = document.getElementById("palette");
const paletteField = palette?.querySelector("input[role=combobox]");

function openPalette() {
  paletteField.value = "";
  palette.showModal();
  htmx.trigger(paletteField, "open");
}

function chooseOption(option) {
  for (const each of palette.querySelectorAll("[role=option]")) each.setAttribute("aria-selected", String(each === option));
  paletteField.setAttribute("aria-expanded", String(Boolean(option)));
  if (option) paletteField.setAttribute("aria-activedescendant", option.id);
  else paletteField.removeAttribute("aria-activedescendant");
  option?.scrollIntoView({ block: "nearest" });
}

palette?.addEventListener("htmx:afterSettle", () => chooseOption(palette.querySelector("[role=option]")));
palette?.addEventListener("submit", (event) => {
  if (event.target.matches("[data-no-submit]")) event.preventDefault();
});
palette?.addEventListener("click", (event) => {
  if (event.target === palette) palette.close();
});
palette?.addEventListener("keydown", (event) => {
  const options = [...palette.querySelectorAll("[role=option]")];
  const at = options.findIndex((option) => option.getAttribute("aria-selected") === "true");
  const steps = { ArrowDown: 1, ArrowUp: -1 };
  if (options.length && event.key in steps) {
    event.preventDefault();
    chooseOption(options[(at + steps[event.key] + options.length) % options.length]);
  } else if (event.key === "Enter" && at >= 0) {
    event.preventDefault();
    if (event.ctrlKey || event.metaKey) window.open(options[at].href, "_blank", "noopener");
    else options[at].click();
  }
});
document.addEventListener("click", (event) => {
  if (event.target.closest("[data-palette]")) openPalette();
});

for (const box of document.querySelectorAll("[data-keys-switch]")) {
  box.checked = !localStorage.getItem(KEYS_OFF);
  box.addEventListener("change", () => {
    if (box.checked) localStorage.removeItem(KEYS_OFF);
    else localStorage.setItem(KEYS_OFF, "yes");
  });
}

// ---- tick boxes of a list ----
// [data-select] in each row, [data-select-all] in the head, and [data-selected-count] shows the number.

document.addEventListener("change", (event) => {
  const all = event.target.closest("[data-select-all]");
  if (all) {
    for (const box of document.querySelectorAll("[data-select]")) box.checked = all.checked;
  }
  if (all || event.target.matches("[data-select]")) showSelection();
});

function showSelection() {
  const boxes = [...document.querySelectorAll("[data-select]")];
  const count = boxes.filter((box) => box.checked).length;
  for (const box of boxes) {
    const row = box.closest("tr");
    if (box.checked) row.setAttribute("aria-selected", "true");
    else row.removeAttribute("aria-selected");
  }
  for (const all of document.querySelectorAll("[data-select-all]")) {
    all.checked = count > 0 && count === boxes.length;
    all.indeterminate = count > 0 && count < boxes.length;
  }
  for (const words of document.querySelectorAll("[data-selected-count]")) words.textContent = `${count} selected`;
}

// A page that the browser kept may come back with its boxes ticked.
window.addEventListener("pageshow", () => {
  if (document.querySelector("[data-select]:checked")) showSelection();
});

// ---- suggested subjects ----
// [data-suggest] is a field for an ID of a subject; its value is the name of the field of the kind, if the form has one.
// The body names the address of the suggestions, for those who may see subjects. Without it the field is an ordinary one.

const SUGGEST_AFTER = 250;
const SUBJECT_KINDS = ["user", "project", "tenant"];
let suggestTimer = 0;

document.addEventListener("focusin", (event) => {
  const field = event.target;
  if (!field.matches("[data-suggest]:not([role])") || !document.body.dataset.subjects) return;
  const list = document.createElement("ul");
  list.id = `${field.id || field.name}-suggestions`;
  list.className = "suggestions";
  list.hidden = true;
  list.role = "listbox";
  list.ariaLabel = "Subjects";
  const count = document.createElement("span");
  count.className = "visually-hidden";
  count.role = "status";
  field.after(list, count);
  field.role = "combobox";
  field.ariaAutoComplete = "list";
  field.ariaExpanded = "false";
  field.setAttribute("aria-controls", list.id);
  // The press of a button on an option must not take the focus from the field.
  list.addEventListener("pointerdown", (press) => press.preventDefault());
  list.addEventListener("click", (click) => {
    const option = click.target.closest("[role=option]");
    if (option) chooseSuggestion(field, option);
  });
  field.addEventListener("blur", () => showSuggestions(field, false));
});

document.addEventListener("input", (event) => {
  const field = event.target;
  if (!field.matches("[data-suggest][role]")) return;
  clearTimeout(suggestTimer);
  suggestTimer = setTimeout(() => suggest(field), SUGGEST_AFTER);
});

async function suggest(field) {
  const kind = kindOf(field);
  const list = suggestionsOf(field);
  const typed = field.value.trim();
  if (!typed || (kind && !SUBJECT_KINDS.includes(kind.value))) return showSuggestions(field, false);
  await htmx.ajax("POST", document.body.dataset.subjects, { target: list, swap: "innerHTML", values: { q: typed } });
  if (typed !== field.value.trim() || document.activeElement !== field) return;
  showSuggestions(field, list.children.length > 0);
  const { length } = list.children;
  list.nextElementSibling.textContent = `${length || "No"} subject${length === 1 ? "" : "s"} suggested`;
}

function suggestionsOf(field) {
  return document.getElementById(field.getAttribute("aria-controls"));
}

function kindOf(field) {
  return field.dataset.suggest ? field.form?.elements[field.dataset.suggest] : null;
}

function showSuggestions(field, isOpen) {
  const list = suggestionsOf(field);
  list.hidden = !isOpen;
  if (!isOpen) list.replaceChildren();
  field.ariaExpanded = String(isOpen);
  field.removeAttribute("aria-activedescendant");
}

function chooseSuggestion(field, option) {
  field.value = option.dataset.value;
  const kind = kindOf(field);
  if (kind) kind.value = option.dataset.kind;
  showSuggestions(field, false);
}

// Whether the key was one for the open suggestions.
function moveInSuggestions(event) {
  const field = event.target;
  if (field.ariaExpanded !== "true") return false;
  const options = [...suggestionsOf(field).children];
  const at = options.findIndex((option) => option.ariaSelected === "true");
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (event.key === "Escape") showSuggestions(field, false);
  else if (event.key === "Enter" && at >= 0) chooseSuggestion(field, options[at]);
  else if (step) {
    const next = at < 0 && step < 0 ? options.length - 1 : (at + step + options.length) % options.length;
    options.forEach((option, index) => { option.ariaSelected = String(index === next); });
    field.setAttribute("aria-activedescendant", options[next].id);
    options[next].scrollIntoView({ block: "nearest" });
  } else return false;
  event.preventDefault();
  return true;
}

// ---- clock and notices ----

// The server writes times in this zone, from the next page on.
const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
document.cookie = `time_zone=${zone}; path=/; max-age=31536000; SameSite=Lax${location.protocol === "https:" ? "; Secure" : ""}`;

setInterval(() => {
  for (const clock of document.querySelectorAll("[data-clock]")) {
    clock.textContent = new Date().toLocaleTimeString("en-GB", { timeZone: clock.dataset.clock, timeStyle: "short" });
  }
  for (const time of document.querySelectorAll("time[data-ago]")) {
    // Of the same words as the server's; what is older or later does not change while a page is open.
    const minutes = Math.round((Date.now() - Date.parse(time.dateTime)) / 60_000);
    if (minutes >= 1 && minutes < 60) time.textContent = `${minutes} min ago`;
    else if (minutes >= 60 && minutes < 24 * 60) time.textContent = `${Math.floor(minutes / 60)} h ago`;
  }
}, 10_000);

for (const failure of ["htmx:responseError", "htmx:sendError"]) {
  document.addEventListener(failure, ({ detail }) => {
    const toasts = document.getElementById("toasts");
    const notice = detail?.xhr?.getResponseHeader("X-Notice") ?? "request-failed";
    const toast = document.getElementById(notice)?.content;
    if (toast && !toasts.querySelector("[data-failed]")) {
      toasts.append(toast.cloneNode(true));
      toasts.lastElementChild.dataset.failed = "";
      const request = toasts.lastElementChild.querySelector("[data-request-id]");
      const id = detail?.xhr?.getResponseHeader("X-Request-ID");
      if (request && id) {
        request.lastElementChild.textContent = id;
        request.hidden = false;
      }
    }
  });
}

// Automatic refreshes are not activity of the user and do not extend the session.
document.addEventListener("htmx:configRequest", (event) => {
  if (!event.detail.triggeringEvent) event.detail.headers["X-Background"] = "yes";
});

// After a page replaced this one, screen reader and keyboard users begin at its heading.
document.addEventListener("htmx:afterSettle", (event) => {
  if (event.target.id !== "main") return;
  const heading = event.target.querySelector("h1");
  if (!heading || event.target.contains(document.activeElement)) return;
  heading.tabIndex = -1;
  heading.focus({ preventScroll: true });
});

// ---- the timeline ----

// While an agent writes, the end of the timeline is rendered again; opened and closed details keep their state.
const unfolded = new Map();

function eachFold(visit) {
  for (const fold of document.querySelectorAll("#timeline details")) {
    const item = fold.closest("[id]");
    visit(fold, `${item.id} ${[...item.querySelectorAll("details")].indexOf(fold)}`);
  }
}

document.addEventListener("htmx:beforeSwap", (event) => {
  if (event.detail.target.id === "timeline") eachFold((fold, name) => unfolded.set(name, fold.open));
});
document.addEventListener("htmx:afterSettle", () => {
  eachFold((fold, name) => { fold.open = unfolded.get(name) ?? fold.open; });
  unfolded.clear();
});

// A session opens at its newest item; going back keeps the place where the reader was.
const opened = document.querySelector("[data-opens-at-end] .tl > :last-child");
if (opened && !location.hash && performance.getEntriesByType("navigation")[0]?.type === "navigate") {
  const showEnd = () => opened.scrollIntoView({ block: "end", behavior: "instant" });
  showEnd();
  // Once more when all has its final height, unless the reader has begun to move.
  const begun = new AbortController();
  addEventListener("load", showEnd, { signal: begun.signal });
  for (const move of ["wheel", "touchstart", "pointerdown", "keydown"]) {
    addEventListener(move, () => begun.abort(), { once: true, passive: true });
  }
}

// A refresh keeps the first visible item where it is, and waits while somebody writes in a form of the timeline.
let kept = null;

document.addEventListener("htmx:beforeRequest", (event) => {
  if (event.target.id === "timeline" && event.target.querySelector("form[data-holds-refresh]")) event.preventDefault();
});
document.addEventListener("htmx:beforeSwap", (event) => {
  if (event.detail.target.id !== "timeline") return;
  const item = [...document.querySelectorAll("#timeline .tl > [id]")].find(
    (node) => node.getBoundingClientRect().bottom > READING_LINE,
  );
  kept = item && { id: item.id, top: item.getBoundingClientRect().top };
});
document.addEventListener("htmx:afterSettle", () => {
  const item = kept && document.getElementById(kept.id);
  if (item) window.scrollBy({ top: item.getBoundingClientRect().top - kept.top, behavior: "instant" });
  kept = null;
  noteSeen();
});

// "3 new items" stays until the newest one was in view.
function noteSeen() {
  const news = document.querySelector("#news[data-newest]");
  const last = document.querySelector("#timeline > .tl > :last-child");
  if (kept || !news || !last || last.getBoundingClientRect().bottom > window.innerHeight) return;
  document.getElementById("seen").value = news.dataset.newest;
  news.remove();
}

document.addEventListener("scroll", noteSeen, { passive: true });

// A copy button names an element on the page or an address with the text; without a clipboard it stays hidden.
for (const button of document.querySelectorAll("[data-copy], [data-copy-from]")) {
  if (!navigator.clipboard) break;
  button.hidden = false;
  button.addEventListener("click", async () => {
    const { copy, copyFrom } = button.dataset;
    // If the address requires a purpose or sign-in first, open it as a page.
    const answer = copy ? null : await fetch(copyFrom, { headers: { Accept: "text/markdown" } });
    if (answer && !answer.ok) return location.assign(copyFrom);
    const text = answer ? await answer.text() : document.getElementById(copy).textContent;
    await navigator.clipboard.writeText(text);
    button.querySelector("[data-copy-word]").textContent = "Copied";
  });
}
