// Areas for sizes, nested by scope. One stop of the Tab key; the arrow keys go from area to area.

import { hierarchy, treemap, treemapSquarify } from "d3-hierarchy";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import "./treemap.css";

export interface Area {
  /** Around it, outermost first. */
  path: string[];
  name: string;
  size: number;
  /** Beside the name, where there is room. */
  text: string;
  colour: string;
  hatched?: boolean;
}

interface TreemapProps {
  label: string;
  areas: Area[];
  height: number;
  chosen: number | null;
  onChoose: (at: number) => void;
}

interface Node {
  name: string;
  at: number | null;
  children?: Node[];
}

/** Deeper scopes than this become part of the names inside. */
const DEPTH = 2;

/** Scopes as a tree; a scope with one thing inside is named together with it. */
export function nested(areas: Area[]): Node {
  const root: Node = { name: "", at: null, children: [] };
  areas.forEach((area, at) => {
    let here = root;
    for (const part of area.path) {
      let next = here.children!.find((it) => it.at === null && it.name === part);
      if (!next) here.children!.push((next = { name: part, at: null, children: [] }));
      here = next;
    }
    here.children!.push({ name: area.name, at });
  });
  const joined = (node: Node): Node => {
    if (!node.children) return node;
    const children = node.children.map(joined);
    const only = children.length === 1 && node !== root ? children[0]! : null;
    if (only) return { ...only, name: `${node.name}/${only.name}` };
    return { ...node, children };
  };
  const flat = (node: Node, before: string): Node[] =>
    node.children
      ? node.children.flatMap((it) => flat(it, `${before}${node.name}/`))
      : [{ ...node, name: before + node.name }];
  const shallow = (node: Node, depth: number): Node =>
    node.children
      ? {
          ...node,
          children: node.children.flatMap((it) =>
            depth < DEPTH ? [shallow(it, depth + 1)] : flat(it, ""),
          ),
        }
      : node;
  return shallow(joined(root), 0);
}

export function Treemap({ label, areas, height, chosen, onChoose }: TreemapProps) {
  const box = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const target = box.current;
    if (!target) return;
    const watch = new ResizeObserver(() => setWidth(target.clientWidth));
    watch.observe(target);
    return () => watch.disconnect();
  }, []);
  const nodes = useMemo(() => {
    if (width === 0) return [];
    const tree = hierarchy(nested(areas))
      .sum((it) => (it.at === null ? 0 : areas[it.at]!.size))
      .sort((a, b) => (b.value ?? 0) - (a.value ?? 0));
    return treemap<Node>()
      .tile(treemapSquarify)
      .size([width, height])
      .paddingInner(1)
      .paddingTop((it) => (it.depth > 0 && it.children ? 18 : 0))
      .round(true)(tree)
      .descendants()
      .filter((it) => it.depth > 0);
  }, [areas, width, height]);
  const leaves = nodes.filter((it) => it.data.at !== null);
  const stop = leaves.some((it) => it.data.at === chosen) ? chosen : (leaves[0]?.data.at ?? null);
  const step = (from: number, by: number) => {
    const at = leaves.findIndex((it) => it.data.at === from);
    const next = leaves[(at + by + leaves.length) % leaves.length]?.data.at ?? null;
    if (next === null) return;
    onChoose(next);
    box.current?.querySelector<HTMLElement>(`[data-at="${next}"]`)?.focus();
  };
  return (
    <div
      ref={box}
      class="treemap"
      style={{ height: `${height}px` }}
      role="listbox"
      aria-label={`${label}. Arrow keys go from one to the next`}
    >
      {nodes.map((it) => {
        const { at, name } = it.data;
        const place = {
          left: `${it.x0}px`,
          top: `${it.y0}px`,
          width: `${it.x1 - it.x0}px`,
          height: `${it.y1 - it.y0}px`,
        };
        if (at === null) {
          return (
            <div
              key={`scope ${it.depth} ${name} ${it.x0} ${it.y0}`}
              class="scope"
              style={place}
              aria-hidden="true"
            >
              {it.x1 - it.x0 > 40 && name}
            </div>
          );
        }
        const area = areas[at]!;
        const full = [...area.path, area.name].join("/");
        const roomy = it.x1 - it.x0 > 48 && it.y1 - it.y0 > 18;
        return (
          <div
            key={at}
            data-at={at}
            class={`area ${area.hatched ? "hatched" : ""}`}
            style={{ ...place, "--area": `var(--${area.colour})` }}
            role="option"
            aria-selected={chosen === at}
            tabIndex={at === stop ? 0 : -1}
            title={`${full}\n${area.text}`}
            onClick={() => onChoose(at)}
            onKeyDown={(key) => {
              const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[key.key];
              if (by) step(at, by);
              else if (key.key === "Enter" || key.key === " ") onChoose(at);
              else return;
              key.preventDefault();
            }}
          >
            {roomy && it.y1 - it.y0 > 36 ? (
              <>
                <span class="name">{name}</span> <span class="text">{area.text}</span>
              </>
            ) : (
              <span class={roomy ? "name" : "visually-hidden"}>
                {name} {area.text}
              </span>
            )}
          </div>
        );
      })}
    </div>
  );
}
