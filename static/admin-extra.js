/* The search icons of Django's double lists have a label but no role, so screen readers skip it. The lists are created
   after loading, by a script that runs before this one. */
addEventListener("load", () => {
  for (const icon of document.querySelectorAll("span.help-tooltip[aria-label]")) icon.setAttribute("role", "img");
});
