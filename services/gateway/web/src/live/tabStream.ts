// A tab's part of the stream that all tabs of a browser share.

import { ConnectError } from "@connectrpc/connect";
import type { Heard, ToTab, ToWorker } from "./messages";
import { Renewal, type Open } from "./stream";

/** Opens streams by a worker, of which one goes on at a time. */
export function openBy(port: MessagePort): Open {
  let nextId = 1;
  const tell = (message: ToWorker) => port.postMessage(message);
  port.start();
  return async function* (request, signal): AsyncGenerator<Heard> {
    const id = nextId++;
    const waiting: ToTab[] = [];
    let wake = (): void => undefined;
    let isOver = false; // for the worker as well
    const hear = ({ data }: MessageEvent<ToTab>) => {
      if (data.id !== id) return;
      waiting.push(data);
      wake();
    };
    const aborted = () => wake();
    port.addEventListener("message", hear);
    signal.addEventListener("abort", aborted);
    tell({ open: id, request });
    try {
      for (;;) {
        signal.throwIfAborted();
        const next = waiting.shift();
        if (!next) await new Promise<void>((woken) => (wake = woken));
        else if ("event" in next) {
          tell({ taken: id });
          yield next;
        } else {
          isOver = true;
          if ("renew" in next) throw new Renewal();
          if (next.end) throw new ConnectError(next.end.message, next.end.code);
          return;
        }
      }
    } finally {
      port.removeEventListener("message", hear);
      signal.removeEventListener("abort", aborted);
      if (!isOver) tell({ close: id });
    }
  };
}
