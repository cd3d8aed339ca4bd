// The worker that all tabs of a browser share: browsers open six connections to a server, however many tabs there are.

import { createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-web";
import { GatewayService } from "$gen/resolute/api/gateway/v1/gateway_service_pb.js";
import { SharedStream } from "./sharedStream";

// Its own address is that of the page, and assets/BUILD/worker.js.
const baseUrl = new URL("../..", self.location.href).href.replace(/\/$/, "");
const gateway = createClient(GatewayService, createConnectTransport({ baseUrl, useBinaryFormat: true }));
const shared = new SharedStream({ open: (request, signal) => gateway.watch(request, { signal }) });

self.addEventListener("connect", (event) => {
  const [port] = (event as MessageEvent).ports;
  if (port) shared.add(port);
});
