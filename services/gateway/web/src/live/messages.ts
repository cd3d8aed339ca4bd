// What the tabs of a browser and the worker that has their stream tell each other.

import type { WatchResponse } from "$gen/resolute/api/gateway/v1/gateway_service_pb.js";
import type { Request } from "./subscription";

/** News of a stream. */
export type Heard = Pick<WatchResponse, "event">;

/** A tab asks for something in the place of what it asked for before; ends what it asked for; has worked through one message. */
export type ToWorker =
  | { readonly open: number; readonly request: Request }
  | { readonly close: number }
  | { readonly taken: number };

/** About what a tab asked for: news; its end, with a code of Connect, or none where all is complete; or that it is to ask again. */
export type ToTab = { readonly id: number } & (
  | Heard
  | { readonly end: { readonly code: number; readonly message: string } | undefined }
  | { readonly renew: true }
);
