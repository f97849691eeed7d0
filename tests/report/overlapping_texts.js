// Pairs of visible texts whose boxes share more than a hair's breadth: [text, text, width, height].
(() => {
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const boxes = [];
  while (walker.nextNode()) {
    const node = walker.currentNode, parent = node.parentElement;
    if (!node.data.trim() || !parent.checkVisibility({visibilityProperty: true, opacityProperty: true})) continue;
    if (parent.closest('.vh, script, style, title')) continue;
    const range = document.createRange(); range.selectNodeContents(node);
    for (const r of range.getClientRects()) {
      if (r.width < 1 || r.height < 1) continue;
      let box = {l: r.left, t: r.top, r: r.right, b: r.bottom};
      // what an ancestor clips or scrolls away is not seen
      for (let e = parent; e && e !== document.body; e = e.parentElement) {
        const s = getComputedStyle(e);
        if (s.overflowX !== 'visible' || s.overflowY !== 'visible') {
          const c = e.getBoundingClientRect();
          box = {l: Math.max(box.l, c.left), t: Math.max(box.t, c.top), r: Math.min(box.r, c.right), b: Math.min(box.b, c.bottom)};
        }
      }
      if (box.r - box.l > 1 && box.b - box.t > 1) boxes.push({...box, node, text: node.data.trim().slice(0, 40)});
    }
  }
  const hits = [];
  boxes.sort((a, b) => a.t - b.t);
  for (let i = 0; i < boxes.length; i++) for (let j = i + 1; j < boxes.length; j++) {
    const a = boxes[i], b = boxes[j];
    if (b.t > a.b) break;
    if (a.node === b.node) continue;
    const w = Math.min(a.r, b.r) - Math.max(a.l, b.l), h = Math.min(a.b, b.b) - Math.max(a.t, b.t);
    if (w > 1 && h > 3) hits.push([a.text, b.text, Math.round(w), Math.round(h)]);
  }
  return hits;
})()
