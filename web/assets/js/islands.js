// Brings the islands of a page to life. In a chapter the module is fetched when the first of them comes near the window; each island is
// handed to its exported function once. Follows leptos' own island script, less what this site does not use.
const [script, wasm] = ["SCRIPT", "WASM"];
let module;
// The typesetter of answers, a module of its own: editors ask for it when they are first used.
let preview;
globalThis.ringlabPreview = () =>
  (preview ??= import("PREVIEW_SCRIPT").then(async (mod) => {
    await mod.default({ module_or_path: "PREVIEW_WASM" });
    return mod.render;
  }));
const load = () =>
  (module ??= import(script).then(async (mod) => {
    await mod.default({ module_or_path: wasm });
    mod.hydrate();
    document.documentElement.dataset.islands = "ready";
    return mod;
  }));
const failed = (error) => {
  console.error(error);
  document.documentElement.dataset.islands = "failed";
};
const hydrate = (island) =>
  load()
    .then((mod) => {
      mod[island.dataset.component](island);
      island.dataset.hydrated = "";
    })
    .catch(failed);
const seen = new IntersectionObserver(
  (entries) => {
    for (const { isIntersecting, target } of entries) {
      if (!isIntersecting) continue;
      seen.unobserve(target);
      hydrate(target);
    }
  },
  { rootMargin: "800px" },
);
for (const island of document.querySelectorAll("leptos-island")) {
  // In a chapter people read first; a form must be alive before somebody presses its button.
  if (island.closest(".chapter-body")) seen.observe(island);
  else hydrate(island);
}
