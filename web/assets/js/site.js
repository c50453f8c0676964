// What every page needs without the islands: the theme switch, the mark on the section being read, and the reader's own state where a page
// has a place for it (a small module of its own).
const root = document.documentElement;

for (const button of document.querySelectorAll("[data-theme-toggle]")) {
  const dark = () =>
    (root.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  const show = () => button.setAttribute("aria-pressed", String(dark()));
  show();
  button.addEventListener("click", () => {
    root.dataset.theme = dark() ? "light" : "dark";
    try {
      localStorage.setItem("ringlab.theme", root.dataset.theme);
    } catch {
      // Storage is off: the choice lasts for this page.
    }
    show();
    dispatchEvent(new Event("ringlab-theme"));
  });
}

const links = new Map();
for (const link of document.querySelectorAll(".toc a[href^='#']")) {
  const target = document.getElementById(decodeURIComponent(link.hash.slice(1)));
  if (target) links.set(target, [...(links.get(target) ?? []), link]);
}
if (links.size) {
  const mark = () => {
    let current = null;
    for (const heading of links.keys()) if (heading.getBoundingClientRect().top < 120) current = heading;
    for (const [heading, all] of links)
      for (const link of all)
        if (heading === current) link.setAttribute("aria-current", "location");
        else link.removeAttribute("aria-current");
  };
  let waiting = false;
  addEventListener(
    "scroll",
    () => {
      if (waiting) return;
      waiting = true;
      requestAnimationFrame(() => {
        waiting = false;
        mark();
      });
    },
    { passive: true },
  );
  mark();
}

const build = document.body.dataset.build;
if (build && document.querySelector("[data-reader]"))
  import(`/pkg/reader.js?v=${build}`)
    .then(async (reader) => {
      await reader.default({ module_or_path: `/pkg/reader_bg.wasm?v=${build}` });
      reader.read();
    })
    // The text is complete without it.
    .catch((error) => console.error(error));
// `/` looks something up, as in other manuals; not while somebody types, nor with a modifier that the browser may want.
const search = document.querySelector("[data-search-link]");
if (search) {
  addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (event.target.closest?.("input, textarea, select, [contenteditable]")) return;
    event.preventDefault();
    const field = document.getElementById("search-q");
    if (field) field.select();
    else location.assign(search.href);
  });
}

// Entries of a reference page that hold all the words typed; groups without any disappear.
for (const box of document.querySelectorAll("[data-filter]")) {
  const field = box.querySelector("input");
  const none = box.querySelector("[data-filter-none]");
  const entries = [...document.querySelectorAll("[data-filter-entry]")].map((entry) => [
    entry,
    entry.textContent.toLowerCase(),
  ]);
  const show = () => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    let any = false;
    for (const [entry, text] of entries) {
      entry.hidden = !words.every((word) => text.includes(word));
      any ||= !entry.hidden;
    }
    for (const group of document.querySelectorAll("[data-filter-group]"))
      group.hidden = !group.querySelector("[data-filter-entry]:not([hidden])");
    none.hidden = any;
  };
  field.addEventListener("input", show);
  // The browser may have put back what was typed before the page was left.
  if (field.value) show();
  // A link to an entry shows it, whatever is typed.
  addEventListener("hashchange", () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target?.closest("[hidden]")) return;
    field.value = "";
    show();
    target.scrollIntoView();
  });
}

// A term explains itself where it stands: a card on hover, focus or tap, made from the definition at the end of the page.
const terms = document.querySelectorAll("a.term[href^='#term-']");
if (terms.length) {
  let card = null;
  let owner = null;
  let waiting = 0;
  const hide = () => {
    clearTimeout(waiting);
    card?.remove();
    owner?.removeAttribute("aria-describedby");
    card = owner = null;
  };
  const later = (act, after) => {
    clearTimeout(waiting);
    waiting = setTimeout(act, after);
  };
  const show = (link) => {
    if (owner === link) return clearTimeout(waiting);
    hide();
    const name = document.getElementById(link.hash.slice(1));
    const definition = name?.nextElementSibling;
    if (!definition) return;
    card = document.createElement("div");
    card.className = "term-card";
    card.id = "term-card";
    card.setAttribute("role", "note");
    card.lang = link.closest("[lang]").lang;
    const head = document.createElement("div");
    head.append(...[...name.childNodes].map((node) => node.cloneNode(true)));
    const text = document.createElement("p");
    text.append(...[...definition.childNodes].map((node) => node.cloneNode(true)));
    card.append(head, text);
    // Behind the link, so that the keyboard reaches what the card links to.
    link.after(card);
    owner = link;
    link.setAttribute("aria-describedby", card.id);
    const place = link.getClientRects()[0] ?? link.getBoundingClientRect();
    const box = card.offsetParent?.getBoundingClientRect() ?? { left: 0, top: 0 };
    const left = Math.max(16, Math.min(place.left, innerWidth - card.offsetWidth - 16));
    const below = place.bottom + card.offsetHeight + 8 < innerHeight || place.top < card.offsetHeight + 8;
    const top = below ? place.bottom + 6 : place.top - card.offsetHeight - 6;
    const origin = card.offsetParent === document.body || !card.offsetParent;
    card.style.left = `${left - (origin ? -scrollX : box.left)}px`;
    card.style.top = `${top - (origin ? -scrollY : box.top)}px`;
    card.addEventListener("pointerenter", () => clearTimeout(waiting));
    card.addEventListener("pointerleave", () => later(hide, 200));
  };
  for (const link of terms) {
    // The card says it; a second bubble would cover it.
    link.removeAttribute("title");
    link.addEventListener("pointerenter", (event) => {
      if (event.pointerType === "mouse") later(() => show(link), 150);
    });
    link.addEventListener("pointerleave", (event) => {
      if (event.pointerType === "mouse") later(hide, 200);
    });
    link.addEventListener("focus", () => {
      if (link.matches(":focus-visible")) show(link);
    });
    link.addEventListener("click", (event) => {
      // A finger has no hover: the first tap shows the card, a second one follows the link.
      if (matchMedia("(hover: none)").matches && owner !== link) {
        event.preventDefault();
        show(link);
      }
    });
  }
  addEventListener("keydown", (event) => {
    if (event.key === "Escape") hide();
  });
  addEventListener("focusin", (event) => {
    if (card && event.target !== owner && !card.contains(event.target)) hide();
  });
  addEventListener("pointerdown", (event) => {
    if (card && !card.contains(event.target) && !owner.contains(event.target)) hide();
  });
}
