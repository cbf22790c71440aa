// Outputs of a notebook whose page was loaded again: the kernel's updates no longer reach them, this does.

const GIVEN_UP = "Error displaying widget";
const VIEW = "application/vnd.jupyter.widget-view+json";
const LOOKS_FOR_ERROR = 10;

/**
 * Puts the record, and at the end the words in the panel's place, into the outputs that carry this session's mark.
 * Returns whether such an output was found: only JupyterLab shows its notebook to a widget.
 */
export function writeOutputs(model, saved) {
  let isFound = false;
  for (const { outputs, k, mark } of marked(model, saved.id)) {
    const data = saved[mark.part];
    if (!data) continue;
    isFound = true;
    if (!Object.keys(data).length || outputs.get(k).data["text/html"] === data["text/html"]) continue;
    outputs.set(k, { output_type: "display_data", data, metadata: { cutegen_nb: mark } });
  }
  return isFound;
}

/**
 * Draws the panel anew where JupyterLab gave it up. While a page loads, an output looks for its model for two
 * seconds; if the page is too busy to restore the models until then, the output says "model not found" for good.
 */
export async function drawAgain(model) {
  for (let tries = 0; tries < LOOKS_FOR_ERROR; tries++) {
    await new Promise((resolve) => setTimeout(resolve, 1000));
    if (![...document.querySelectorAll(".jp-OutputArea-output")].some((node) => node.textContent.startsWith(GIVEN_UP))) continue;
    for (const { outputs, k } of marked(model, model.get("mark"))) {
      const id = outputs.get(k).data[VIEW]?.model_id;
      if (!id) continue;
      const { views } = await model.widget_manager.get_model(id);
      if (!Object.keys(views ?? {}).length) outputs.set(k, outputs.get(k).toJSON());
    }
  }
}

/** The outputs that carry a session's mark. */
function* marked(model, id) {
  const cells = model.widget_manager?.context?.model?.cells;
  for (let i = 0; i < (cells?.length ?? 0); i++) {
    const outputs = cells.get(i).outputs;
    for (let k = 0; k < (outputs?.length ?? 0); k++) {
      const mark = outputs.get(k).metadata?.cutegen_nb;
      if (mark?.id === id) yield { outputs, k, mark };
    }
  }
}
