// Pictures as files: SVG and PNG.

import type { Picture, Shape } from "./picture";

const FONT = "system-ui, sans-serif";
const SIZE = 11;
const BAND = 0.18;
/** Pixels of a PNG for one of the picture: for slides and papers. */
const SCALE = 2;

const isCut = (shape: Shape): boolean => shape.kind !== "text" && !!shape.cut;
/** A text within markup. */
export const escaped = (text: string): string => text.replace(/[&<>"]/g, (one) => `&#${one.charCodeAt(0)};`);

/**
 * A picture as the text of an SVG document.
 *
 * @param clip Name of what cuts its lines: pictures within one document need names of their own.
 */
export function svgOf(picture: Picture, clip = "plot"): string {
  const { width, height, plot, shapes, colors } = picture;
  const body = shapes.map((shape) => svgShape(shape, isCut(shape) ? ` clip-path="url(#${clip})"` : "", colors.text));
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family="${FONT}" font-size="${SIZE}">`,
    `<clipPath id="${clip}"><rect x="${plot.left}" y="${plot.top}" width="${plot.width}" height="${plot.height}"/></clipPath>`,
    `<rect width="${width}" height="${height}" fill="${colors.ground}"/>`,
    ...body,
    "</svg>\n",
  ].join("\n");
}

function svgShape(shape: Shape, clip: string, color: string): string {
  if (shape.kind === "text") {
    return `<text x="${shape.at[0].toFixed(1)}" y="${shape.at[1].toFixed(1)}" text-anchor="${shape.anchor}" fill="${color}"${shape.bold ? ' font-weight="600"' : ""}>${escaped(shape.text)}</text>`;
  }
  if (shape.kind === "dot") return `<circle cx="${shape.at[0].toFixed(1)}" cy="${shape.at[1].toFixed(1)}" r="${shape.radius}" fill="${shape.color}"${clip}/>`;
  const points = shape.points.map((one) => one.map((at) => at.toFixed(1)).join(",")).join(" ");
  if (shape.kind === "area") return `<polygon points="${points}" fill="${shape.color}" fill-opacity="${BAND}"${clip}/>`;
  const dash = shape.dash.length ? ` stroke-dasharray="${shape.dash.join(" ")}"` : "";
  return `<polyline points="${points}" fill="none" stroke="${shape.color}" stroke-width="${shape.width}"${dash}${clip}/>`;
}

/** A picture as a PNG. */
export function pngOf(picture: Picture): Promise<Blob | null> {
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [picture.width * SCALE, picture.height * SCALE];
  const context = canvas.getContext("2d");
  if (!context) return Promise.resolve(null);
  context.scale(SCALE, SCALE);
  context.fillStyle = picture.colors.ground;
  context.fillRect(0, 0, picture.width, picture.height);
  for (const shape of picture.shapes) {
    context.save();
    if (isCut(shape)) {
      context.beginPath();
      context.rect(picture.plot.left, picture.plot.top, picture.plot.width, picture.plot.height);
      context.clip();
    }
    paint(context, shape, picture.colors.text);
    context.restore();
  }
  return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
}

function paint(context: CanvasRenderingContext2D, shape: Shape, color: string): void {
  if (shape.kind === "text") {
    context.font = `${shape.bold ? "600 " : ""}${SIZE}px ${FONT}`;
    context.textAlign = shape.anchor === "middle" ? "center" : shape.anchor;
    context.fillStyle = color;
    context.fillText(shape.text, ...shape.at);
    return;
  }
  context.beginPath();
  if (shape.kind === "dot") {
    context.arc(...shape.at, shape.radius, 0, 2 * Math.PI);
    context.fillStyle = shape.color;
    context.fill();
    return;
  }
  shape.points.forEach((point, at) => (at ? context.lineTo(...point) : context.moveTo(...point)));
  if (shape.kind === "area") {
    context.globalAlpha = BAND;
    context.fillStyle = shape.color;
    context.fill();
    return;
  }
  context.strokeStyle = shape.color;
  context.lineWidth = shape.width;
  context.setLineDash([...shape.dash]);
  context.stroke();
}
