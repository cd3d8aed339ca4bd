// Calls for what trials have logged beside metrics: lists and contents.

import type { Media } from "$gen/resolute/api/checkpoints/v1/media_pb.js";
import { type ListMediaNamesResponse, MediaService } from "$gen/resolute/api/checkpoints/v1/media_service_pb.js";
import { clientOf, within } from "$src/api/services";
import { route } from "$src/frame/route.svelte";
import type { Entry } from "./steps";

const service = clientOf(MediaService);
const [PAGE_SIZE, MOST] = [1000, 5000];

/** The names that trials have logged under, and what was dropped of them. */
export const listNames = (trialIds: string[], signal: AbortSignal): Promise<ListMediaNamesResponse> =>
  service.listMediaNames({ trialIds }, within(signal));

/** What a trial has logged under a name, by steps: the first thousands. */
export async function listMedia(trialId: string, { name, kind }: Entry, signal: AbortSignal): Promise<Media[]> {
  const found: Media[] = [];
  let pageToken = "";
  do {
    const page = await service.listMedia({ trialId, name, kind, pageSize: PAGE_SIZE, pageToken }, within(signal));
    found.push(...page.media);
    pageToken = page.nextPageToken;
  } while (pageToken && found.length < MOST);
  return found;
}

/** Where the content is, under the cookie of the session. */
export const urlOf = ({ trialId, mediaId }: Media): string => route.url(`media/${trialId}/${mediaId}`);

/** The content as text; small ones have come with the list. */
export async function textOf(one: Media, signal: AbortSignal): Promise<string> {
  const { content } =
    BigInt(one.content.length) === one.size
      ? one
      : ((await service.getMedia({ trialId: one.trialId, mediaId: one.mediaId }, within(signal))).media ?? one);
  return new TextDecoder().decode(content);
}
