/* The search icons of Django's double lists say what they are for, but not that they are pictures: without that nobody
   is read it. The lists are made when the page has loaded, by a script that comes before this one. */
addEventListener("load", () => {
  for (const icon of document.querySelectorAll("span.help-tooltip[aria-label]")) icon.setAttribute("role", "img");
});
