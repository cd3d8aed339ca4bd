// Numbers, times and sizes as people read them.

import type { Timestamp } from "@bufbuild/protobuf/wkt";
import { timestampMs } from "@bufbuild/protobuf/wkt";

const UNITS = [
  [86_400, "d"],
  [3600, "h"],
  [60, "min"],
  [1, "s"],
] as const;

const LARGE = [
  [1e12, "T"],
  [1e9, "G"],
  [1e6, "M"],
] as const;

/** A number with four significant digits. */
export function shortNumber(value: number | undefined): string {
  if (value === undefined) return "–";
  if (!Number.isFinite(value)) return Number.isNaN(value) ? "NaN" : value > 0 ? "∞" : "−∞";
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e15)) return value.toExponential(3).replace(/\.?0*e\+?/, "e");
  const large = LARGE.find(([one]) => size >= one);
  if (large) return `${trimmed((value / large[0]).toPrecision(4))} ${large[1]}`;
  if (Number.isInteger(value)) return value.toLocaleString("en-US");
  return trimmed(size >= 1e4 ? value.toFixed(0) : value.toPrecision(4));
}

/** A difference, with its sign. */
export const difference = (value: number): string => (value > 0 ? `+${shortNumber(value)}` : shortNumber(value).replace("-", "−"));

const trimmed = (text: string) => (text.includes(".") ? text.replace(/\.?0+$/, "") : text);

/** A number with its noun, which gets an s unless it is one. */
export const count = (number: number | bigint, noun: string): string => `${shortNumber(Number(number))} ${noun}${Number(number) === 1 ? "" : "s"}`;

/** How many steps the next run of a trial repeats. */
export const stepsLost = (steps: bigint): string => `${count(steps, "step")} lost`;

/** How many steps a second; nothing where that is not known. */
export const stepsRate = (rate: number | undefined): string => (rate === undefined ? "" : `${shortNumber(rate)} steps/s`);

/** A span with its two largest units. */
export function duration(seconds: number): string {
  const whole = Math.max(0, Math.floor(seconds));
  const first = UNITS.findIndex(([size]) => whole >= size);
  if (first < 0) return "0 s";
  const [size, unit] = UNITS[first] ?? [1, "s"];
  const next = UNITS[first + 1];
  const rest = next ? Math.floor((whole % size) / next[0]) : 0;
  return `${Math.floor(whole / size)} ${unit}${next && rest ? ` ${rest} ${next[1]}` : ""}`;
}

/** How long ago something was, with its largest unit. */
export function ago(time: Timestamp | number | undefined, now: number): string {
  if (!time) return "–";
  const seconds = (now - (typeof time === "number" ? time : timestampMs(time))) / 1000;
  if (seconds < 5) return "just now";
  const [size, unit] = UNITS.find(([one]) => seconds >= one) ?? [1, "s"];
  return `${Math.floor(seconds / size)} ${unit} ago`;
}

/** The time between two moments; up to now while there is no second. */
export function between(start: Timestamp | undefined, end: Timestamp | undefined, now: number): string {
  if (!start) return "–";
  return duration(((end ? timestampMs(end) : now) - timestampMs(start)) / 1000);
}

/** How long something is expected to take still, with its largest unit; nothing where that is not known. */
export function timeLeft(end: Timestamp | undefined, now: number): string {
  if (!end) return "";
  const seconds = (timestampMs(end) - now) / 1000;
  const [size, unit] = UNITS.find(([one]) => seconds >= one) ?? [1, "s"];
  return seconds < 1 ? "any moment" : `about ${Math.floor(seconds / size)} ${unit}`;
}

/** A moment in full, for titles. */
export const exact = (time: Timestamp | undefined): string => exactMs(time && timestampMs(time));

/** The same of milliseconds since 1970. */
export const exactMs = (time: number | undefined): string => (time === undefined ? "" : new Date(time).toLocaleString());

/** Bytes with a binary unit. */
export function bytes(size: bigint): string {
  let value = Number(size);
  for (const unit of ["B", "KiB", "MiB", "GiB"]) {
    if (value < 1024) return `${trimmed(value.toFixed(value < 10 && unit !== "B" ? 1 : 0))} ${unit}`;
    value /= 1024;
  }
  return `${trimmed(value.toFixed(1))} TiB`;
}

export const percent = (share: number): string => `${Math.floor(share * 100)} %`;
