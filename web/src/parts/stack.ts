// Values on top of each other, as a chart draws them.

/** Sums from the bottom up, drawn from the top down, so that each covers what is below it. */
export function aligned(
  x: number[],
  series: { values: (number | null)[] }[],
  stacked: boolean,
): [number[], ...(number | null)[][]] {
  if (!stacked) return [x, ...series.map((it) => it.values)];
  const sums: (number | null)[][] = [];
  const below = new Array<number>(x.length).fill(0);
  for (const one of series) {
    sums.push(
      one.values.map((it, at) => {
        below[at]! += it ?? 0;
        return below[at]!;
      }),
    );
  }
  return [x, ...sums.reverse()];
}
