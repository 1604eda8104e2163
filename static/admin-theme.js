// Django admin has the theme of the console, which has the switch. Not deferred: it chooses before the first paint.
const chosen = localStorage.getItem("tabler-theme");
document.documentElement.dataset.theme = ["dark", "light"].includes(chosen) ? chosen : "auto";
