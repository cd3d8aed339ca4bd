// A finger on a chart: along it zooms as a mouse does, which is all that uPlot knows; up and down scrolls the page.

/** Passes what a finger does on as what a mouse would; says whether it was a finger. */
export function passOn(event: PointerEvent, over: HTMLElement | undefined): boolean {
  if (event.pointerType !== "touch") return false;
  const { type, clientX, clientY } = event;
  // uPlot takes a move without any way for none.
  const send = (name: string, target: EventTarget | undefined) =>
    target?.dispatchEvent(new MouseEvent(name, { clientX, clientY, movementX: 1, bubbles: true, cancelable: true, view: window }));
  if (type === "pointerdown") {
    send("mousemove", over);
    send("mousedown", over);
  } else send(type === "pointermove" ? "mousemove" : "mouseup", type === "pointermove" ? over : document);
  return true;
}
