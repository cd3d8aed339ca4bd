import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { Throttled } from "$src/ui/throttled.svelte";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

it("shows the first value at once, and then the newest one now and then", () => {
  const throttled = new Throttled<number>(1000);
  throttled.offer(1);
  throttled.offer(2);
  throttled.offer(3);
  expect(throttled.shown).toBe(1);
  vi.advanceTimersByTime(1000);
  expect(throttled.shown).toBe(3);
  throttled.offer(4);
  expect(throttled.shown).toBe(3);
  throttled.end();
  vi.advanceTimersByTime(5000);
  expect(throttled.shown).toBe(3);
});

it("shows at once what somebody waits for, and what comes then no sooner than otherwise", () => {
  const throttled = new Throttled<number>(1000);
  throttled.offer(1);
  throttled.offer(2);
  throttled.show(3);
  expect(throttled.shown).toBe(3);
  throttled.offer(4);
  vi.advanceTimersByTime(999);
  expect(throttled.shown).toBe(3);
  vi.advanceTimersByTime(1);
  expect(throttled.shown).toBe(4);
});
