// A second run, opened beside the one that is shown.

import { useEffect, useState } from "preact/hooks";
import type { RunStatus } from "./types";
import { client, type Answer } from "./store";

/** Opens a run beside the one that is shown, and says how far that is. */
export function useOpened(run: number | null): Answer<RunStatus> {
  const [answer, setAnswer] = useState<Answer<RunStatus> & { run: number | null }>({
    value: null,
    error: null,
    run: null,
  });
  useEffect(() => {
    if (run === null) return;
    let wanted = true;
    const follow = async () => {
      try {
        while (wanted) {
          const now = await client.json<RunStatus>(`runs/${run}/status`);
          if (!wanted) return;
          if (now.state === "failed") throw new Error(now.error ?? "the run could not be opened");
          setAnswer({ value: now, error: null, run });
          if (now.state === "ready") return;
          await new Promise((wake) => setTimeout(wake, now.seconds < 1 ? 50 : 200));
        }
      } catch (error) {
        if (wanted) setAnswer({ value: null, error: error as Error, run });
      }
    };
    void follow();
    return () => {
      wanted = false;
    };
  }, [run]);
  return answer.run === run ? answer : { value: null, error: null };
}
