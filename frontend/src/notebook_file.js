// Outputs of a notebook whose page was loaded again: the kernel's updates no longer reach them, this does.

/**
 * Puts the record, and at the end the words in the panel's place, into the outputs that carry this session's mark.
 * Returns whether such an output was found: only JupyterLab shows its notebook to a widget.
 */
export function writeOutputs(model, saved) {
  const cells = model.widget_manager?.context?.model?.cells;
  if (!cells) return false;
  let isFound = false;
  for (let i = 0; i < cells.length; i++) {
    const outputs = cells.get(i).outputs;
    for (let k = 0; k < (outputs?.length ?? 0); k++) {
      const mark = outputs.get(k).metadata?.cutegen_nb;
      const data = mark?.id === saved.id ? saved[mark.part] : null;
      if (!data) continue;
      isFound = true;
      if (!Object.keys(data).length || outputs.get(k).data["text/html"] === data["text/html"]) continue;
      outputs.set(k, { output_type: "display_data", data, metadata: { cutegen_nb: mark } });
    }
  }
  return isFound;
}
