// What the tests ask a page in the browser. Each function returns a list of complaints.

// Visible texts with too little contrast to the nearest opaque background behind them, as WCAG defines it.
function poorContrast() {
  const parse = text => (text.match(/[\d.]+/g) || []).map(Number);
  const linear = v => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const light = c => 0.2126 * linear(c[0]) + 0.7152 * linear(c[1]) + 0.0722 * linear(c[2]);
  const ground = node => {
    let layers = [];
    for (; node; node = node.parentElement) {
      const [r, g, b, a = 1] = parse(getComputedStyle(node).backgroundColor);
      if (a > 0) layers.push([r, g, b, a]);
      if (a === 1) break;
    }
    return layers.reverse().reduce(
      (under, [r, g, b, a]) => [r, g, b].map((v, i) => v * a + under[i] * (1 - a)),
      [255, 255, 255]);
  };
  const poor = new Set();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode, box = node.parentElement;
    if (!node.data.trim() || box.closest('script,style') || !box.getClientRects().length) continue;
    const style = getComputedStyle(box), drawn = box.namespaceURI.endsWith('svg');
    const fore = parse(drawn ? style.fill : style.color), back = ground(box);
    const [a, b] = [light(fore), light(back)].sort((x, y) => y - x);
    const large = parseFloat(style.fontSize) >= 24;
    const ratio = (a + 0.05) / (b + 0.05);
    const said = `${ratio.toFixed(2)}: ${node.data.trim().slice(0, 40)}`;
    if (ratio < (large ? 3 : 4.5)) poor.add(said);
  }
  return [...poor];
}

// What reaches beyond the right edge. On paper nothing scrolls.
function overflow() {
  return [...document.querySelectorAll('body *')]
    .filter(e => !e.parentElement.closest(
      matchMedia('print').matches ? 'svg' : '.scroll, .code, svg') && e.checkVisibility())
    .concat(document.documentElement)
    .filter(e => e.getBoundingClientRect().right > document.documentElement.clientWidth + 0.5
      || e === document.documentElement && e.scrollWidth > e.clientWidth)
    .map(e => e.tagName + '.' + e.getAttribute('class'));
}

// What is cut: on a phone only tables may be wider than their boxes, which scroll; and everywhere the
// letters of pictures beyond what is shown of them.
function cut() {
  const narrow = innerWidth <= 560, all = [...document.querySelectorAll('body *')]
    .filter(e => e.checkVisibility() && !e.closest('.unseen'));
  const hidden = all.filter(e => !e.closest('svg') && e.clientWidth && e.scrollWidth > e.clientWidth + 1
    && getComputedStyle(e).overflowX !== 'visible'
    && (narrow ? !e.matches('.scroll:has(> table)') : !e.matches('.scroll, .code')));
  const letters = all.filter(e => e.matches('svg[role=img] text')).filter(e => {
    const box = e.closest('svg'), visible = getComputedStyle(box).overflow === 'visible';
    const [text, edge] = [e, visible ? box.closest('.scroll') : box].map(each => each.getBoundingClientRect());
    return text.left < edge.left - 0.5 || text.right > edge.right + 0.5;
  });
  return [...hidden, ...letters].map(e => `${e.tagName}.${e.getAttribute('class')}: ${e.textContent.slice(0, 40)}`);
}

// Parts that stay folded: their last element has a height only where the style sheet unfolds it.
function folded() {
  return [...document.querySelectorAll('details:not([open], .aside)')]
    .filter(each => !each.lastElementChild.checkVisibility({contentVisibilityProperty: true}))
    .map(each => each.firstElementChild.textContent);
}

// Lines of Chinese text that begin with a sign that belongs to the line before, or end with one that
// belongs to the next.
function brokenLines() {
  const broken = [], range = document.createRange();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode;
    if (!/[\u4e00-\u9fff]/.test(node.data) || node.parentElement.closest('svg, pre, .code')
        || !node.parentElement.checkVisibility()) continue;
    let before = null;
    [...node.data].forEach((sign, index) => {
      range.setStart(node, index);
      range.setEnd(node, index + sign.length);
      const box = range.getBoundingClientRect();
      if (!box.width) return;
      if (before && box.top > before.box.bottom - 1
          && (/[，。；：、？！）》”’]/.test(sign) || /[（《“‘]/.test(before.sign))) {
        broken.push(node.data.slice(Math.max(0, index - 12), index + 4));
      }
      before = {sign, box};
    });
  }
  return broken;
}

// Entries of the table of contents that lead nowhere.
function deadContents() {
  return [...document.querySelectorAll('.contents a')]
    .map(each => each.hash.slice(1)).filter(id => !document.getElementById(id));
}
