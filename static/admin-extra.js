/* The search icons of Django's double lists have a label but no role, so screen readers skip it. The lists are created
   after loading, by a script that runs before this one. */
addEventListener("load", () => {
  for (const icon of document.querySelectorAll("span.help-tooltip[aria-label]")) icon.setAttribute("role", "img");
});

// The times offered beside a field, with hours from 0 to 23. The script that shows them begins after loading.
if (window.DateTimeShortcuts) {
  const hours = [0, 6, 12, 18].map((hour) => [`${String(hour).padStart(2, "0")}:00`, hour]);
  window.DateTimeShortcuts.clockHours.default_ = [["Now", -1], ...hours];
}
