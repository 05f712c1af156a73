// Narrows the view at hand to a host, a device, some steps; only what it can be narrowed to is there.

import { useState } from "preact/hooks";
import { records, useReport, useTable } from "../data/store";
import { narrowed, stepsFrom, stepsText, type Narrowing } from "../data/narrowing";
import { go, route } from "../router";

interface NarrowBarProps {
  run: number;
  by: readonly Narrowing[];
}

export function NarrowBar({ run, by }: NarrowBarProps) {
  const { value: report } = useReport(run);
  const uses = useTable(run, "device_use").value;
  const { host, device, steps } = narrowed.value;
  if (!report || !uses) return null;
  const own = records(uses).filter((it) => host === null || it.host === host);
  const devices = [...new Set(own.map((it) => it.device))];
  return (
    <>
      {by.includes("host") && report.run.hosts.length > 1 && (
        <Choice name="Host" all="All hosts" values={report.run.hosts} chosen={host} />
      )}
      {by.includes("device") && devices.length > 1 && (
        <Choice name="Device" all="All devices" values={devices} chosen={device} />
      )}
      {by.includes("steps") && report.steps.count > 1 && (
        <Steps key={stepsText(steps)} text={stepsText(steps)} />
      )}
    </>
  );
}

/** Back undoes it. A window of time belongs to what was shown before. */
function narrow(change: Partial<Record<Narrowing, string | null>>): void {
  const { view, params } = route.peek();
  go(view, { ...params, from: null, to: null, ...change });
}

interface ChoiceProps {
  name: "Host" | "Device";
  all: string;
  values: string[];
  chosen: string | null;
}

const Choice = ({ name, all, values, chosen }: ChoiceProps) => (
  <select
    aria-label={name}
    value={chosen ?? ""}
    onChange={(it) => {
      const value = it.currentTarget.value || null;
      narrow(name === "Host" ? { host: value, device: null } : { device: value });
    }}
  >
    <option value="">{all}</option>
    {values.map((it) => (
      <option key={it}>{it}</option>
    ))}
  </select>
);

function Steps({ text }: { text: string }) {
  const [wrong, setWrong] = useState(false);
  return (
    <input
      type="text"
      class="narrow-steps"
      aria-label="Steps, as 3-8"
      placeholder="All steps"
      title="Some steps, as 3-8; empty for all"
      value={text}
      aria-invalid={wrong}
      onChange={(it) => {
        const wanted = it.currentTarget.value.trim();
        const steps = stepsFrom(wanted);
        setWrong(wanted !== "" && steps === null);
        if (wanted === "" || steps) narrow({ steps: stepsText(steps) || null });
      }}
    />
  );
}
