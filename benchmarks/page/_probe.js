// Runs in the page before its own code: notes when canvases are drawn and answers come, and tells how long something took to be seen.
(() => {
  const probe = { drawn: 0, painted: 0, asked: 0, answered: 0, pending: 0, listed: 0, result: undefined };
  const clear = CanvasRenderingContext2D.prototype.clearRect;
  CanvasRenderingContext2D.prototype.clearRect = function (...where) {
    probe.drawn = performance.now();
    void frame().then(() => (probe.painted = performance.now()));
    return clear.apply(this, where);
  };
  const ask = window.fetch;
  window.fetch = async (resource, options) => {
    if (String(resource).endsWith("/Watch")) return ask(resource, options); // of browsers without shared workers
    probe.asked = performance.now();
    probe.pending += 1;
    try {
      return await ask(resource, options);
    } finally {
      probe.pending -= 1;
    }
  };
  for (const way of ["arrayBuffer", "json", "text"]) {
    const read = Response.prototype[way];
    Response.prototype[way] = async function () {
      const content = await read.call(this);
      probe.answered = performance.now();
      return content;
    };
  }

  // What is followed comes by a shared worker, whose answers are not seen here: the rows are.
  new MutationObserver((changes) => {
    if (changes.some(({ target }) => (target instanceof Element ? target : target.parentElement)?.closest("table"))) {
      probe.listed = performance.now();
    }
  }).observe(document, { subtree: true, childList: true, characterData: true });

  /** Resolves once a frame is painted. */
  const frame = () =>
    new Promise((seen) =>
      requestAnimationFrame(() => {
        const { port1, port2 } = new MessageChannel();
        port1.onmessage = seen;
        port2.postMessage(undefined);
      }),
    );

  /** Milliseconds from the navigation until a condition holds and is painted. */
  probe.loaded = async (condition) => {
    while (!condition()) await frame();
    await frame();
    return performance.now();
  };

  /** Milliseconds from the navigation until the last drawing was painted, once none has come for so long after a condition held. */
  probe.settled = async (condition, quiet) => {
    while (!condition() || !probe.drawn || performance.now() - probe.drawn < quiet) await frame();
    return probe.painted;
  };

  /** Lets `probe.result` be the milliseconds from the next event of a type until a condition, told the event's time, is painted. */
  probe.listen = (type, condition) => {
    const heard = new Promise((resolve) => window.addEventListener(type, resolve, { capture: true, once: true }));
    probe.result = heard.then(async ({ timeStamp }) => {
      do await frame();
      while (!condition(timeStamp));
      await frame();
      return performance.now() - timeStamp;
    });
  };
  window.probe = probe;
})();
