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
