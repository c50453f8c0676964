// Brings the islands of a page to life: the module is fetched when the first of them comes near the window, and each island is handed
// to its exported function once. Follows leptos' own island script, less what this site does not use (children, the islands' router).
const [script, wasm] = ["SCRIPT", "WASM"];
let module;
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
const seen = new IntersectionObserver(
  (entries) => {
    for (const { isIntersecting, target } of entries) {
      if (!isIntersecting) continue;
      seen.unobserve(target);
      load()
        .then((mod) => {
          mod[target.dataset.component](target);
          target.dataset.hydrated = "";
        })
        .catch(failed);
    }
  },
  { rootMargin: "600px" },
);
// An island draws no box of its own (`display: contents`); its first element does.
for (const island of document.querySelectorAll("leptos-island")) seen.observe(island);
