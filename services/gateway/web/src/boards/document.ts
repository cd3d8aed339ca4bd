// A report as one HTML file that needs nothing else: its text, and its charts as they are drawn now.

import { drawnCharts } from "$src/exports/drawnCharts";
import { pictureOf } from "$src/exports/picture";
import { escaped, svgOf } from "$src/exports/render";

const KEPT = new Set(["h2", "h3", "h4", "h5", "h6", "p", "ul", "ol", "li", "blockquote", "pre", "code", "strong", "em", "del", "br", "hr", "figcaption"]);
const TABLES = new Set(["table", "thead", "tbody", "tr", "th", "td"]);
/** What works with a chart of the page alone. */
const LEFT_OUT = "button, details, summary, input, .hidden-label, .chart-tools";
const EMPTY = new Set(["br", "hr"]);

/** The document of what an element shows. */
export function documentOf(root: Element, title: string): string {
  const style = getComputedStyle(document.documentElement);
  const [ground, text, dim, line, accent] = ["--ground", "--text", "--dim", "--line", "--accent"].map((name) => style.getPropertyValue(name).trim());
  return [
    "<!doctype html>",
    '<html><head><meta charset="utf-8">',
    '<meta name="viewport" content="width=device-width">',
    `<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">`,
    `<title>${escaped(title)}</title>`,
    `<style>body{max-width:1000px;margin:24px auto;padding:0 16px;background:${ground};color:${text};font:15px/1.5 system-ui,sans-serif;overflow-wrap:anywhere}`,
    `a{color:${accent}}figcaption,blockquote{color:${dim}}th,td{padding:4px 8px;border:1px solid ${line};text-align:left}table{border-collapse:collapse}`,
    "pre{overflow-x:auto}svg{max-width:100%;height:auto}</style></head>",
    `<body><h1>${escaped(title)}</h1>`,
    new Writer().within(root),
    "</body></html>\n",
  ].join("\n");
}

class Writer {
  #charts = 0;

  within(element: Element): string {
    return [...element.childNodes].map((node) => (node instanceof Element ? this.#element(node) : node.nodeType === Node.TEXT_NODE ? escaped(node.textContent ?? "") : "")).join("");
  }

  #element(element: Element): string {
    const drawn = drawnCharts.get(element);
    if (drawn) return svgOf(pictureOf(drawn.chart, drawn.lines, drawn.titles), `plot${(this.#charts += 1)}`);
    if (element.matches(LEFT_OUT)) return "";
    const name = element.localName;
    if (EMPTY.has(name)) return `<${name}>`;
    const body = this.within(element);
    if (element instanceof HTMLAnchorElement) return `<a href="${escaped(element.href)}" rel="noreferrer noopener">${body}</a>`;
    return KEPT.has(name) || TABLES.has(name) ? `<${name}>${body}</${name}>` : body;
  }
}
