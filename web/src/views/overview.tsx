// The answer first: the sentence, the bar of the step, the findings; then the proof.

import { useReport } from "../data/store";
import { Failed } from "../parts/empty";
import { StepBar } from "../parts/step-bar";
import type { ViewProps } from ".";

export default function Overview({ run }: ViewProps) {
  const { value: report, error } = useReport(run);
  if (error) return <Failed error={error} />;
  if (!report) return <div class="pad skeleton">…</div>;
  return (
    <div class="pad">
      <h1>{report.verdict}</h1>
      <StepBar report={report} />
    </div>
  );
}
