// The widget's module. It loads the panel's code, once for all panels of a page.
//
// anywidget gives a module two seconds to start. On a page that was loaded again every panel starts at once, and one
// that comes late gets no more updates from the kernel. This module starts at once; the code comes after.

const modules = (globalThis.cutegenNbModules ??= new Map());

function load(code) {
  if (!modules.has(code)) {
    const url = URL.createObjectURL(new Blob([code], { type: "text/javascript" }));
    modules.set(code, import(url).then((module) => module.default).finally(() => URL.revokeObjectURL(url)));
  }
  return modules.get(code);
}

function initialize({ model }) {
  const ended = load(model.get("module")).then((panel) => panel.initialize({ model }));
  return () => ended.then((end) => end());
}

async function render({ model, el }) {
  return (await load(model.get("module"))).render({ model, el });
}

export default { initialize, render };
