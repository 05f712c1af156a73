// What ran, on the host and on the devices: by op, by type, by name scope, by call.

import { useMemo } from "preact/hooks";
import { docs, records, useAnswer, useTable, useWholeTable } from "../data/store";
import type { HostCall, OpTime, ScopeTime } from "../data/tables";
import type { TableOf } from "../data/types";
import { percent, plain, thousands, time } from "../format";
import { Choice, type Option } from "../parts/choice";
import { DataTable, DataTableSkeleton, inAddress, type DataColumn } from "../parts/data-table";
import { Details, type Figure } from "../parts/details";
import { Empty, Failed } from "../parts/empty";
import { useEscape } from "../parts/escape";
import { Icicle } from "../parts/icicle";
import { documented } from "../parts/table-columns";
import { ROOT, scopeTime, type Side } from "../parts/scopes";
import { go, link, remember, route, showEvents } from "../router";
import type { ViewProps } from ".";
import "./ops.css";

interface Type {
  op_type: string | null;
  family: string;
  ops: number;
  count: number;
  self_ps: number;
  self_share: number;
}

const SIDES: Record<Side, string> = { device: "Device", host: "Host" };

export default function Ops({ run }: ViewProps) {
  const ops = useWholeTable(run, "op_time");
  const scopes = useWholeTable(run, "scope_time");
  const calls = useTable(run, "host_call");
  const error = ops.error ?? scopes.error ?? calls.error;
  if (error) return <Failed error={error} />;
  if (!ops.value || !scopes.value || !calls.value) {
    return (
      <div class="pad ops">
        <h1 class="skeleton">What ran, and for how long</h1>
        <div class="ops-scopes">
          <div class="skeleton" />
        </div>
        <DataTableSkeleton rows={20} fill />
      </div>
    );
  }
  return <Shown run={run} ops={ops.value} scopes={scopes.value} calls={calls.value} />;
}

function Shown(props: {
  run: number;
  ops: TableOf<"op_time">;
  scopes: TableOf<"scope_time">;
  calls: TableOf<"host_call">;
}) {
  const all = useMemo(() => records(props.ops), [props.ops]);
  const scopes = useMemo(() => records(props.scopes), [props.scopes]);
  const calls = useMemo(() => records(props.calls), [props.calls]);
  const { params } = route.value;
  const has = (side: Side) => all.some((it) => it.side === side);
  const sides = (["device", "host"] as const).filter(has);
  const side = sides.find((it) => it === params["side"]) ?? sides[0] ?? "host";
  const groups: Option[] = [
    { id: "op", title: "Op" },
    { id: "type", title: "Type", doc: "Ops of one type together" },
  ];
  const scoped = scopes.some((it) => it.scope !== ROOT && scopeTime(it, side) > 0);
  if (scoped) {
    groups.push({
      id: "scope",
      title: "Scope",
      doc: "Ops by the layers, modules and functions they are in",
    });
  }
  if (calls.length > 0) groups.push({ id: "call", title: "Call", doc: props.calls.doc });
  const by = groups.find((it) => it.id === params["by"])?.id ?? "op";
  const zoom = scopes.some((it) => it.scope === params["scope"]) ? params["scope"]! : ROOT;
  const zoomTo = (scope: string) =>
    go("ops", { ...params, scope: scope === ROOT ? null : scope, open: null });
  const parent = scopes.find((it) => it.scope === zoom)?.parent ?? ROOT;
  useEscape(zoom !== ROOT, () => zoomTo(parent));

  const inside = useMemo(
    () =>
      all.filter(
        (it) =>
          it.side === side &&
          (zoom === ROOT ||
            it.scope === zoom ||
            it.name === zoom ||
            it.scope.startsWith(`${zoom}/`)),
      ),
    [all, side, zoom],
  );

  if (all.length === 0 && calls.length === 0) {
    return (
      <div class="pad">
        <Empty command="strobe run -- python train.py">
          No ops are in this profile. TensorFlow and JAX write them while a step runs under their
          profiler; a capture that starts and ends between steps has none.
        </Empty>
      </div>
    );
  }
  const sum = inside.reduce((total, it) => total + it.self_ps, 0);
  const colour = side === "device" || sides.length < 2 ? "compute" : "runtime";
  const tools = (
    <>
      {sides.length > 1 && by !== "call" && (
        <Choice
          label="Side"
          options={sides.map((it) => ({ id: it, title: SIDES[it] }))}
          chosen={side}
          onChoose={(it) => go("ops", { ...params, side: it, open: null, sort: null })}
        />
      )}
      <Choice
        label="Grouped by"
        options={groups}
        chosen={by}
        onChoose={(it) => go("ops", { ...params, by: it, open: null, sort: null })}
      />
    </>
  );
  const shared = { tools, side, colour: `var(--${colour})`, run: props.run };
  return (
    <div class="pad ops">
      <h1>
        {by === "call"
          ? `${thousands(calls.length)} calls of the driving thread into the framework`
          : `${thousands(inside.length)} ${inside.length === 1 ? "op" : "ops"} on the ${side}, ${time(sum)} in all`}
      </h1>
      {by !== "call" && scoped && (
        <div class="ops-scopes">
          <Icicle
            rows={scopes}
            side={side}
            colour={shared.colour}
            zoom={zoom}
            onZoom={zoomTo}
            levels={6}
          />
        </div>
      )}
      {by === "op" && <ByOp {...shared} rows={inside} doc={docs(props.ops)} />}
      {by === "type" && <ByType {...shared} rows={inside} doc={docs(props.ops)} />}
      {by === "scope" && (
        <ByScope {...shared} all={scopes} zoom={zoom} onOpen={zoomTo} doc={docs(props.scopes)} />
      )}
      {by === "call" && <ByCall {...shared} rows={calls} doc={docs(props.calls)} />}
    </div>
  );
}

interface Shared {
  run: number;
  tools: preact.ComponentChildren;
  side: Side;
  colour: string;
  doc: Record<string, string>;
}

/** The input pipeline's ops stand out, as everywhere. */
const colourOf = (family: string, colour: string): string =>
  family === "tf.data" ? "var(--input)" : colour;

const close = () => remember({ open: null });

function ByOp({ rows, doc, side, colour, tools, run }: Shared & { rows: OpTime[] }) {
  const columns = useMemo(() => {
    const column = documented<OpTime>(doc);
    return [
      column("name", "Op", "text", { show: (it) => plain(it.name) }),
      column("op_type", "Type", "text", { width: 152 }),
      column("self_ps", "Self", "time"),
      column("self_share", "Share", "share", {
        bar: (it) => colourOf(it.family, colour),
        width: 112,
      }),
      column("count", side === "device" ? "Kernels" : "Count", "count"),
      column("mean_ps", "Mean", "time"),
      ...(side === "host" ? [column("total_ps", "Total", "time")] : []),
      ...(rows.some((it) => it.device_ps !== null) && side === "host"
        ? [column("device_ps", "Device", "time")]
        : []),
      ...(rows.some((it) => it.eager) ? [column("eager", "Eager", "bool")] : []),
    ];
  }, [rows, doc, side, colour]);
  const open = route.value.params["open"];
  const key = (it: OpTime) => (it.module ? `${it.name}@${it.module}` : it.name);
  const opened = open === undefined ? undefined : rows.find((it) => key(it) === open);
  return (
    <div class="ops-table">
      <DataTable
        fill
        label="ops"
        noun={["op", "ops"]}
        columns={columns}
        rows={rows}
        tools={tools}
        {...inAddress({ key: "self_ps", descending: true })}
        onOpen={(it) => remember({ open: key(it) })}
        {...(opened && { marked: (it: OpTime) => it === opened })}
      />
      {opened && <OpDetails op={opened} doc={doc} run={run} />}
    </div>
  );
}

function OpDetails({ op, doc, run }: { op: OpTime; doc: Record<string, string>; run: number }) {
  const answer = useAnswer<TableOf<"kernel_time">>(
    op.side === "device" ? `runs/${run}/tables/kernel_time` : null,
  );
  const kernels = useMemo(
    () =>
      answer.value
        ? records(answer.value)
            .filter((it) => it.op === op.name)
            .sort((a, b) => b.total_ps - a.total_ps)
        : [],
    [answer.value, op],
  );
  const figures: (Figure | false)[] = [
    { title: "Type", text: op.op_type ?? "–", doc: doc["op_type"] },
    op.scope !== "" && {
      title: "Scope",
      text: (
        <a href={link("ops", { ...route.value.params, scope: op.scope, open: null })}>
          {plain(op.scope)}
        </a>
      ),
      doc: doc["scope"],
    },
    { title: "Family", text: op.family, doc: doc["family"] },
    op.module !== null && { title: "Program", text: op.module, doc: doc["module"] },
    { title: "Ran on", text: op.side, doc: doc["side"] },
    {
      title: op.side === "device" ? "Kernels run" : "Times run",
      text: thousands(op.count),
      doc: doc["count"],
    },
    { title: "Self time", text: time(op.self_ps), doc: doc["self_ps"] },
    { title: `Share of the ${op.side}`, text: percent(op.self_share), doc: doc["self_share"] },
    { title: "Total time", text: time(op.total_ps), doc: doc["total_ps"] },
    { title: "Mean", text: time(op.mean_ps), doc: doc["mean_ps"] },
    { title: "Shortest", text: time(op.min_ps), doc: doc["min_ps"] },
    { title: "Longest", text: time(op.max_ps), doc: doc["max_ps"] },
    op.device_ps !== null && {
      title: "Device work it started",
      text: time(op.device_ps),
      doc: doc["device_ps"],
    },
    op.eager !== null && {
      title: "Called one by one",
      text: op.eager ? "yes" : "no",
      doc: doc["eager"],
    },
  ];
  // On a device the events are kernels, which have names of their own, and must be known first.
  const isKnown = op.side !== "device" || answer.value !== null || answer.error !== null;
  const search = op.side === "device" && kernels[0] ? kernels[0].name : op.name;
  return (
    <Details
      label="Op"
      name={op.name}
      figures={figures.filter((it) => it !== false)}
      onClose={close}
    >
      <div class="links">
        {isKnown && <a href={link("timeline", { q: search })}>Show on the timeline</a>}
        {kernels.length > 0 && (
          <a href={link("kernels", { filter: op.name })}>
            {kernels.length === 1 ? "Its kernel" : `Its ${thousands(kernels.length)} kernels`}
          </a>
        )}
      </div>
    </Details>
  );
}

function ByType({ rows, doc, side, colour, tools }: Shared & { rows: OpTime[] }) {
  const types = useMemo(() => {
    const found = new Map<string | null, Type>();
    for (const op of rows) {
      const type = found.get(op.op_type) ?? {
        op_type: op.op_type,
        family: op.family,
        ops: 0,
        count: 0,
        self_ps: 0,
        self_share: 0,
      };
      type.ops += 1;
      type.count += op.count;
      type.self_ps += op.self_ps;
      type.self_share += op.self_share;
      found.set(op.op_type, type);
    }
    return [...found.values()];
  }, [rows]);
  const columns = useMemo<DataColumn<Type>[]>(() => {
    const column = documented<Type>({ ...doc, ops: "How many different ops are of this type." });
    return [
      column("op_type", "Type", "text"),
      column("self_ps", "Self", "time"),
      column("self_share", "Share", "share", {
        bar: (it) => colourOf(it.family, colour),
        width: 200,
      }),
      column("ops", "Ops", "count"),
      column("count", side === "device" ? "Kernels" : "Count", "count"),
    ];
  }, [doc, side, colour]);
  return (
    <DataTable
      fill
      label="op types"
      noun={["type", "types"]}
      columns={columns}
      rows={types}
      tools={tools}
      {...inAddress({ key: "self_ps", descending: true })}
      onOpen={(it) =>
        go("ops", { ...route.value.params, by: null, sort: null, filter: it.op_type })
      }
    />
  );
}

function ByScope(
  props: Shared & { all: ScopeTime[]; zoom: string; onOpen: (scope: string) => void },
) {
  const { all, zoom, side, doc, colour } = props;
  const rows = useMemo(
    () =>
      all.filter(
        (it) =>
          it.scope !== ROOT &&
          scopeTime(it, side) > 0 &&
          (zoom === ROOT || it.scope === zoom || it.scope.startsWith(`${zoom}/`)),
      ),
    [all, side, zoom],
  );
  const columns = useMemo<DataColumn<ScopeTime>[]>(() => {
    const root = all.find((it) => it.scope === ROOT);
    const total = root ? scopeTime(root, side) : 0;
    const column = documented<ScopeTime>(doc);
    return [
      column("scope", "Scope", "text", { show: (it) => plain(it.scope) }),
      side === "host" ? column("total_ps", "Total", "time") : column("device_ps", "Device", "time"),
      {
        key: "share",
        title: "Share",
        kind: "share",
        value: (it) => (total > 0 ? scopeTime(it, side) / total : null),
        bar: () => colour,
        width: 112,
        doc: `Its part of all ops on the ${side}, those of inner scopes included.`,
      },
      ...(side === "host"
        ? [column("self_ps", "Self", "time"), column("count", "Count", "count")]
        : []),
      column("n_ops", "Ops", "count"),
    ];
  }, [all, side, doc, colour]);
  return (
    <DataTable
      fill
      label="scopes"
      noun={["scope", "scopes"]}
      columns={columns}
      rows={rows}
      tools={props.tools}
      {...inAddress({ key: "share", descending: true })}
      onOpen={(it) => props.onOpen(it.scope)}
    />
  );
}

function ByCall({ rows, doc, tools }: Shared & { rows: HostCall[] }) {
  const columns = useMemo<DataColumn<HostCall>[]>(() => {
    const column = documented<HostCall>(doc);
    return [
      column("call", "Call", "text"),
      column("kind", "Kind", "text", { width: 88 }),
      column("per_step", "A step", "number"),
      column("total_ps", "Time a step", "time"),
      column("work_ps", "In the op", "time"),
      column("after_ps", "Then, a step", "time"),
      column("longest_after_ps", "Longest then", "time"),
      column("before", "Before", "text", { width: 200 }),
    ];
  }, [doc]);
  const open = route.value.params["open"];
  const opened = open === undefined ? undefined : rows.find((it) => it.call === open);
  return (
    <div class="ops-table">
      <DataTable
        fill
        label="calls"
        noun={["call", "calls"]}
        columns={columns}
        rows={rows}
        tools={tools}
        {...inAddress({ key: "total_ps", descending: true })}
        onOpen={(it) => remember({ open: it.call })}
        {...(opened && { marked: (it: HostCall) => it === opened })}
      />
      {opened && (
        <Details
          label="Call"
          name={opened.call}
          onClose={close}
          figures={[
            { title: "Kind", text: opened.kind, doc: doc["kind"] },
            { title: "Calls", text: thousands(opened.count), doc: doc["count"] },
            { title: "Time a step", text: time(opened.total_ps), doc: doc["total_ps"] },
            { title: "In the op itself", text: time(opened.work_ps), doc: doc["work_ps"] },
            { title: "Until the next call", text: time(opened.after_ps), doc: doc["after_ps"] },
            {
              title: "The longest such time",
              text: time(opened.longest_after_ps),
              doc: doc["longest_after_ps"],
            },
            { title: "Which was before", text: opened.before ?? "–", doc: doc["before"] },
          ]}
        >
          <div class="links">
            <a href={showEvents([opened.event])}>Show on the timeline</a>
          </div>
        </Details>
      )}
    </div>
  );
}
