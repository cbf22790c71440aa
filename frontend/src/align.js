// Which lines of two texts are the same: the kernel says it for what was evaluated, this for what is being typed.
import { Change } from "@codemirror/merge";

const MOST = 4_000_000; // pairs of lines that are compared

/** A diff for CodeMirror: the kernel's ranges for the texts that they were made from, lines for all others. */
export function alignment(old, text, ranges) {
  return (a, b) => (a === old && b === text && ranges.length ? ranges.map((range) => new Change(...range)) : byLines(a, b));
}

function byLines(a, b) {
  const [before, after] = [lines(a), lines(b)];
  let start = 0;
  while (start < before.length && start < after.length && before[start] === after[start]) start++;
  let [endA, endB] = [before.length, after.length];
  while (endA > start && endB > start && before[endA - 1] === after[endB - 1]) [endA, endB] = [endA - 1, endB - 1];
  const [atA, atB] = [offsets(before), offsets(after)];
  const found = [];
  let [fromA, fromB] = [start, start];
  const close = (toA, toB) => {
    if (fromA < toA || fromB < toB) found.push(...changed(a, b, atA[fromA], atA[toA], atB[fromB], atB[toB]));
  };
  for (const [i, k] of common(before.slice(start, endA), after.slice(start, endB))) {
    close(start + i, start + k);
    [fromA, fromB] = [start + i + 1, start + k + 1];
  }
  close(endA, endB);
  return found;
}

/** One line for another: what differs within it. Anything else: the lines as a whole. */
function changed(a, b, fromA, toA, fromB, toB) {
  const [old, text] = [a.slice(fromA, toA), b.slice(fromB, toB)];
  if (!isOneLine(old) || !isOneLine(text)) return [new Change(fromA, toA, fromB, toB)];
  let head = 0;
  while (head < old.length && head < text.length && old[head] === text[head]) head++;
  let tail = 0;
  while (tail < old.length - head && tail < text.length - head && old.at(-1 - tail) === text.at(-1 - tail)) tail++;
  return [new Change(fromA + head, toA - tail, fromB + head, toB - tail)];
}

function isOneLine(text) {
  return text.length > 0 && !text.slice(0, -1).includes("\n");
}

function lines(text) {
  return text.match(/[^\n]*\n|[^\n]+$/g) ?? [];
}

function offsets(list) {
  const found = [0];
  for (const line of list) found.push(found.at(-1) + line.length);
  return found;
}

/** Pairs of equal lines: a longest common subsequence. */
function common(a, b) {
  if (!a.length || !b.length || a.length * b.length > MOST) return [];
  const width = b.length + 1;
  const best = new Uint32Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i--) {
    for (let k = b.length - 1; k >= 0; k--) {
      best[i * width + k] =
        a[i] === b[k] ? best[(i + 1) * width + k + 1] + 1 : Math.max(best[(i + 1) * width + k], best[i * width + k + 1]);
    }
  }
  const found = [];
  for (let i = 0, k = 0; i < a.length && k < b.length; ) {
    if (a[i] === b[k]) found.push([i++, k++]);
    else if (best[(i + 1) * width + k] >= best[i * width + k + 1]) i++;
    else k++;
  }
  return found;
}
