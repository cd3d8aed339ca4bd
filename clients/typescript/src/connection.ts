// Connections over HTTP by the Connect protocol, in browsers and in Node.

import type { Interceptor } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-web";
import { authorize, retryReads } from "./interceptors.js";
import type { Services } from "./services.js";
import { servicesOver } from "./services.js";

/** Gives the token of a call; asked for each call, since tokens are renewed while connections live. */
export type TokenSource = () => string | Promise<string>;

export interface ConnectionOptions {
  /** URL of the gateway, such as `https://resolute.example`. A path of a proxy before it is kept. */
  readonly url: string;
  /** The token of calls; none for calls that need none, such as `login`. */
  readonly token?: string | TokenSource;
  /** More interceptors; they see each call last. */
  readonly interceptors?: readonly Interceptor[];
}

/** Connects to a cluster by HTTP. Nothing is sent before the first call. */
export function connect(options: ConnectionOptions): Services {
  return servicesOver(
    createConnectTransport({
      baseUrl: options.url,
      useBinaryFormat: true,
      interceptors: interceptorsOf(options),
    }),
  );
}

/** What every call of a connection goes through. */
export function interceptorsOf(options: Omit<ConnectionOptions, "url">): Interceptor[] {
  const token = options.token;
  const source = typeof token === "string" ? () => token : token;
  return [retryReads, ...(source ? [authorize(source)] : []), ...(options.interceptors ?? [])];
}

/** Logs in with a name and a password, and returns a token. */
export async function login(services: Services, userName: string, password: string): Promise<string> {
  return (await services.access.login({ userName, password })).bearerToken;
}
