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
// field has focus, and a person can switch all of it off.

let leader = "";
let leaderTimer = 0;

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") return closeMenu(event.target);
  if (event.ctrlKey || event.metaKey || event.altKey || localStorage.getItem(KEYS_OFF)) return;
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
  if (!control) return;
  event.preventDefault();
  if (control.matches("input")) control.focus();
  else control.click();
});

const movements = {
  j: () => stepRow(1),
  k: () => stepRow(-1),
  x: () => focusedRow()?.querySelector("input[type=checkbox]")?.click(),
  n: () => stepRun(1),
  p: () => stepRun(-1),
  o: () => toggleDetails(),
};

// The sidebar is folded on a phone, and its keys still count.
function isShown(node) {
  return node.checkVisibility({ visibilityProperty: true }) || Boolean(node.closest("#nav"));
}

// While a question stands over the page, no key acts on what lies behind it.
function isInReach(node) {
  const question = document.querySelector("[popover]:popover-open");
  return !question || question.contains(node) || node.getAttribute("popovertarget") === question.id;
}

function closeMenu(target) {
  const menu = target.closest("details.menu[open]");
  if (!menu) return;
  menu.open = false;
  menu.querySelector("summary").focus();
}

function focusedRow() {
  return document.activeElement.closest("[data-row]");
}

function stepRow(by) {
  const rows = [...document.querySelectorAll("[data-row]")];
  const at = rows.indexOf(focusedRow() ?? document.querySelector("[data-row][aria-current]"));
  const row = rows[Math.min(rows.length - 1, Math.max(0, at + by))];
  if (row) (row.matches("a") ? row : row.querySelector("a"))?.focus();
}

// Where a run's head comes to rest: the line under the sticky bars.
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

// The details of the item that has the focus, else of the first one after a run's head that has it, else in sight.
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

for (const box of document.querySelectorAll("[data-keys-switch]")) {
  box.checked = !localStorage.getItem(KEYS_OFF);
  box.addEventListener("change", () => {
    if (box.checked) localStorage.removeItem(KEYS_OFF);
    else localStorage.setItem(KEYS_OFF, "yes");
  });
}

// ---- tick boxes of a list ----
// [data-select] in each row, [data-select-all] in the head, and [data-selected-count] says how many.

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

// ---- what the page tells by itself ----

setInterval(() => {
  for (const clock of document.querySelectorAll("[data-clock]")) clock.textContent = new Date().toISOString().slice(11, 16);
}, 10_000);

for (const failure of ["htmx:responseError", "htmx:sendError"]) {
  document.addEventListener(failure, () => {
    const toasts = document.getElementById("toasts");
    const toast = document.getElementById("request-failed")?.content;
    if (toast && !toasts.querySelector("[data-failed]")) {
      toasts.append(toast.cloneNode(true));
      toasts.lastElementChild.dataset.failed = "";
    }
  });
}

// A part that refreshes itself is nobody's doing, and keeps no session open.
document.addEventListener("htmx:configRequest", (event) => {
  if (!event.detail.triggeringEvent) event.detail.headers["X-Background"] = "yes";
});

// Where another page took the place of this one, whoever reads by ear or by keyboard begins at its heading.
document.addEventListener("htmx:afterSettle", (event) => {
  if (event.target.id !== "main") return;
  const heading = event.target.querySelector("h1");
  if (!heading || event.target.contains(document.activeElement)) return;
  heading.tabIndex = -1;
  heading.focus({ preventScroll: true });
});

// ---- the timeline ----

// While an agent writes, the open end of a session is drawn anew; what a person opened or closed stays so.
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

// A copy button names an element on the page or an address with the text; without a clipboard it stays hidden.
for (const button of document.querySelectorAll("[data-copy], [data-copy-from]")) {
  if (!navigator.clipboard) break;
  button.hidden = false;
  button.addEventListener("click", async () => {
    const { copy, copyFrom } = button.dataset;
    // An address of text that asks for something first is a page to go to.
    const answer = copy ? null : await fetch(copyFrom, { headers: { Accept: "text/markdown" } });
    if (answer && !answer.ok) return location.assign(copyFrom);
    const text = answer ? await answer.text() : document.getElementById(copy).textContent;
    await navigator.clipboard.writeText(text);
    button.querySelector("[data-copy-word]").textContent = "Copied";
  });
}
