// GPU kernels: how they were launched, what keeps the device from being full, and copies.

import { useMemo } from "preact/hooks";
import { docs, records, useReport, useTable, useWholeTable } from "../data/store";
import type { Copy, KernelTime } from "../data/tables";
import type { TableOf } from "../data/types";
import { bytes, percent, plain, thousands, time } from "../format";
import { Choice } from "../parts/choice";
import { DataTable, DataTableSkeleton, inAddress, type DataColumn } from "../parts/data-table";
import { Details } from "../parts/details";
import { Empty, Failed } from "../parts/empty";
import { documented } from "../parts/table-columns";
import { go, link, remember, route } from "../router";
import type { ViewProps } from ".";
import "./ops.css";

export default function Kernels({ run }: ViewProps) {
  const kernels = useWholeTable(run, "kernel_time");
  const copies = useTable(run, "copy");
  const error = kernels.error ?? copies.error;
  if (error) return <Failed error={error} />;
  if (!kernels.value || !copies.value) {
    return (
      <div class="pad table-view">
        <h1 class="skeleton">How many kernels, for how long</h1>
        <DataTableSkeleton rows={24} fill />
      </div>
    );
  }
  if (kernels.value.total === 0 && copies.value.total === 0) return <None run={run} />;
  return <Shown kernels={kernels.value} copies={copies.value} />;
}

function None({ run }: { run: number }) {
  const { value: report } = useReport(run);
  if (!report) return null;
  const [device] = report.run.devices;
  return (
    <div class="pad">
      <h1>No kernels in this profile</h1>
      {device ? (
        <Empty command="strobe run -- python train.py">
          The profile names {device.name} but holds no kernels of it. TPUs have none: their ops are
          in <a href={link("ops", { side: "device" })}>Ops</a>. On a GPU, the profiler needs CUPTI
          (or ROCm's tracer) and the right to use it; nothing is recorded without.
        </Empty>
      ) : (
        <Empty command="strobe run -- python train.py">
          This run used the CPU only, which has ops but no kernels: <a href={link("ops")}>Ops</a>{" "}
          lists them. On a machine with a GPU that the framework finds, the same command records its
          kernels.
        </Empty>
      )}
    </div>
  );
}

function Shown(props: { kernels: TableOf<"kernel_time">; copies: TableOf<"copy"> }) {
  const kernels = useMemo(() => records(props.kernels), [props.kernels]);
  const copies = useMemo(() => records(props.copies), [props.copies]);
  const { params } = route.value;
  const what = params["what"] === "copies" || kernels.length === 0 ? "copies" : "kernels";
  const tools = kernels.length > 0 && copies.length > 0 && (
    <Choice
      label="What"
      options={[
        { id: "kernels", title: "Kernels" },
        { id: "copies", title: "Copies", doc: props.copies.doc },
      ]}
      chosen={what}
      onChoose={(it) => go("kernels", { what: it === "kernels" ? null : it })}
    />
  );
  return (
    <div class="pad table-view">
      <Summary kernels={kernels} copies={copies} what={what} />
      {what === "kernels" ? (
        <KernelTable rows={kernels} doc={docs(props.kernels)} tools={tools} />
      ) : (
        <CopyTable rows={copies} doc={docs(props.copies)} tools={tools} />
      )}
    </div>
  );
}

function Summary({
  kernels,
  copies,
  what,
}: {
  kernels: KernelTime[];
  copies: Copy[];
  what: string;
}) {
  const sum = (rows: { total_ps: number }[]) => rows.reduce((all, it) => all + it.total_ps, 0);
  if (what === "copies") {
    const runs = copies.reduce((all, it) => all + it.count, 0);
    return (
      <h1>
        {thousands(runs)} {runs === 1 ? "copy" : "copies"}, {time(sum(copies))} in all
      </h1>
    );
  }
  const total = sum(kernels);
  const known = kernels.filter((it) => it.uses_tensor_cores !== null);
  const cores = sum(known.filter((it) => it.uses_tensor_cores));
  const unknown = total - sum(known);
  const names = new Set(kernels.map((it) => it.name)).size;
  const runs = kernels.reduce((all, it) => all + it.count, 0);
  return (
    <div>
      <h1>
        {thousands(names)} {names === 1 ? "kernel" : "kernels"} ran {thousands(runs)} times,{" "}
        {time(total)} in all
      </h1>
      <p class="faint kernels-summary">
        {known.length === 0
          ? "Whether they use tensor cores cannot be told from their names."
          : cores === 0 && unknown === 0
            ? "None of them uses tensor cores (matrix units)."
            : `${percent(cores / total)} of the time on tensor cores (matrix units), ${percent(
                (total - unknown - cores) / total,
              )} not${unknown > 0 ? `, ${percent(unknown / total)} cannot be told from the names` : ""}.`}
      </p>
    </div>
  );
}

/** Without what every C++ name begins with: its type and its namespaces. */
function shortName(name: string): string {
  const plainly = name.replace(/^void /, "").replaceAll("(anonymous namespace)::", "");
  const end = plainly.search(/[<(]/);
  const from = plainly.lastIndexOf("::", end < 0 ? plainly.length : end);
  return from < 0 ? plainly : plainly.slice(from + 2);
}

const shape = (text: string | null): string | null =>
  text === null ? null : text.replaceAll(",", " × ").replace(/( × 1)+$/, "");

function KernelTable(props: {
  rows: KernelTime[];
  doc: Record<string, string>;
  tools: preact.ComponentChildren;
}) {
  const { rows, doc } = props;
  const columns = useMemo<DataColumn<KernelTime>[]>(() => {
    const column = documented<KernelTime>(doc);
    const known = (key: keyof KernelTime) => rows.some((it) => it[key] !== null);
    return [
      column("name", "Kernel", "text", { show: (it) => shortName(it.name) }),
      column("op", "Op", "text", { show: (it) => plain(it.op ?? "") }),
      column("total_ps", "Time", "time"),
      column("share", "Share", "share", { bar: () => "var(--compute)", width: 96 }),
      column("count", "Count", "count"),
      column("mean_ps", "Mean", "time"),
      ...(known("occupancy")
        ? [
            column("occupancy", "Occupancy", "share"),
            column("occupancy_limit", "Limited by", "text", { width: 112 }),
          ]
        : []),
      ...(known("uses_tensor_cores") ? [column("uses_tensor_cores", "Tensor cores", "bool")] : []),
      column("grid", "Grid", "text", { show: (it) => shape(it.grid) ?? "", width: 96 }),
      column("block", "Block", "text", { show: (it) => shape(it.block) ?? "", width: 88 }),
      ...(known("registers") ? [column("registers", "Registers", "count")] : []),
      {
        key: "shared_bytes",
        title: "Shared",
        kind: "bytes" as const,
        doc: "Shared memory of a block: what the kernel fixes and what the launch asks for.",
        value: sharedBytes,
      },
    ];
  }, [rows, doc]);
  const open = Number(route.value.params["open"] ?? Number.NaN);
  const opened = rows[open];
  const numbers = useMemo(() => new Map(rows.map((it, at) => [it, at])), [rows]);
  return (
    <div class="ops-table">
      <DataTable
        fill
        label="kernels"
        columns={columns}
        rows={rows}
        tools={props.tools}
        {...inAddress({ key: "total_ps", descending: true })}
        onOpen={(it) => remember({ open: numbers.get(it)! })}
        {...(opened && { marked: (it: KernelTime) => it === opened })}
      />
      {opened && <KernelDetails kernel={opened} doc={doc} />}
    </div>
  );
}

function sharedBytes(it: KernelTime): number | null {
  if (it.static_shared_bytes === null && it.dynamic_shared_bytes === null) return null;
  return (it.static_shared_bytes ?? 0) + (it.dynamic_shared_bytes ?? 0);
}

function KernelDetails({ kernel, doc }: { kernel: KernelTime; doc: Record<string, string> }) {
  const tensor = kernel.uses_tensor_cores;
  return (
    <Details
      label="Kernel"
      name={kernel.name}
      onClose={() => remember({ open: null })}
      figures={[
        { title: "Op", text: kernel.op === null ? "–" : plain(kernel.op), doc: doc["op"] },
        { title: "Time", text: time(kernel.total_ps), doc: doc["total_ps"] },
        { title: "Share", text: percent(kernel.share), doc: doc["share"] },
        {
          title: "Ran",
          text: kernel.count === 1 ? "once" : `${thousands(kernel.count)} times`,
          doc: doc["count"],
        },
        { title: "Mean", text: time(kernel.mean_ps), doc: doc["mean_ps"] },
        { title: "Shortest", text: time(kernel.min_ps), doc: doc["min_ps"] },
        { title: "Longest", text: time(kernel.max_ps), doc: doc["max_ps"] },
        { title: "Grid", text: shape(kernel.grid) ?? "–", doc: doc["grid"] },
        { title: "Block", text: shape(kernel.block) ?? "–", doc: doc["block"] },
        {
          title: "Registers of a thread",
          text: thousands(kernel.registers),
          doc: doc["registers"],
        },
        {
          title: "Shared memory, fixed",
          text: bytes(kernel.static_shared_bytes),
          doc: doc["static_shared_bytes"],
        },
        {
          title: "Shared memory, asked for",
          text: bytes(kernel.dynamic_shared_bytes),
          doc: doc["dynamic_shared_bytes"],
        },
        { title: "Occupancy", text: percent(kernel.occupancy), doc: doc["occupancy"] },
        {
          title: "Limited by",
          text: kernel.occupancy_limit ?? "–",
          doc: doc["occupancy_limit"],
        },
        {
          title: "Tensor cores",
          text: tensor === null ? "cannot tell" : tensor ? "yes" : "no",
          doc: doc["uses_tensor_cores"],
        },
      ]}
    >
      <div class="links">
        <a href={link("timeline", { q: kernel.name })}>Show on the timeline</a>
        {kernel.op !== null && (
          <a href={link("ops", { side: "device", open: kernel.op })}>Its op</a>
        )}
      </div>
    </Details>
  );
}

const DIRECTIONS: Record<string, string> = {
  h2d: "to the device",
  d2h: "to the host",
  d2d: "within the device",
  p2p: "between devices",
  memset: "memset",
};

const COPY_COLOURS: Record<string, string> = {
  h2d: "var(--transfer_in)",
  d2h: "var(--transfer_out)",
  p2p: "var(--collective)",
};

function CopyTable(props: {
  rows: Copy[];
  doc: Record<string, string>;
  tools: preact.ComponentChildren;
}) {
  const { rows, doc } = props;
  const columns = useMemo<DataColumn<Copy>[]>(() => {
    const column = documented<Copy>(doc);
    const total = rows.reduce((all, it) => all + it.total_ps, 0);
    return [
      column("direction", "Direction", "text", {
        show: (it) => DIRECTIONS[it.direction] ?? it.direction,
      }),
      column("memory", "Memory", "text"),
      column("device", "Device", "text"),
      ...(new Set(rows.map((it) => it.host)).size > 1 ? [column("host", "Host", "text")] : []),
      column("total_ps", "Time", "time"),
      {
        key: "share",
        title: "Share",
        kind: "share" as const,
        doc: "Its part of all copies' time.",
        value: (it) => (total > 0 ? it.total_ps / total : null),
        bar: (it) => COPY_COLOURS[it.direction] ?? "var(--compute)",
        width: 112,
      },
      column("count", "Count", "count"),
      column("bytes", "Size", "bytes"),
      column("bytes_per_s", "Bandwidth", "bytes", { per: "/s" }),
    ];
  }, [rows, doc]);
  return (
    <DataTable
      fill
      label="copies"
      noun={["kind of copy", "kinds of copies"]}
      columns={columns}
      rows={rows}
      tools={props.tools}
      {...inAddress({ key: "total_ps", descending: true })}
    />
  );
}
