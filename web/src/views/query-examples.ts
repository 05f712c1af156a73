// Queries that teach what can be asked.

export interface Example {
  title: string;
  query: string;
}

export const EXAMPLES: Example[] = [
  {
    title: "The ops that take most time",
    query: `select name, self_ps, self_share, count
from op_time
order by self_ps desc
limit 30`,
  },
  {
    title: "Where each step goes",
    query: `select step, avg(compute_ps) as compute_ps, avg(input_ps) as input_ps,
  avg(python_ps) as python_ps, avg(compile_ps) as compile_ps,
  avg(runtime_ps) as runtime_ps, avg(idle_ps) as idle_ps
from step_time
group by step
order by step`,
  },
  {
    title: "Time by type of op",
    query: `select op_type, sum(self_ps) as self_ps, count(*) as ops
from op_time
group by op_type
order by self_ps desc
limit 30`,
  },
  {
    title: "The longest events; a row opens on the timeline",
    query: `select name, kind, dur_ps, id as event
from event
order by dur_ps desc
limit 100`,
  },
  {
    title: "What was going on in the longest step",
    query: `with longest as (
  select start_ps, start_ps + dur_ps as end_ps from step order by dur_ps desc limit 1
)
select name, kind, count(*) as count, sum(dur_ps) as total_ps
from event, longest
where event.start_ps >= longest.start_ps and event.end_ps <= longest.end_ps
group by name, kind
order by total_ps desc
limit 100`,
  },
  {
    title: "Waiting for input, step by step",
    query: `select step.step, sum(event.dur_ps) as wait_ps, count(*) as waits
from step
join event on event.start_ps >= step.start_ps and event.start_ps < step.start_ps + step.dur_ps
where event.kind = 'input_wait'
group by step.step
order by step.step`,
  },
  {
    title: "From launch to start, by kernel",
    query: `select kernel.name, avg(kernel.start_ps - call.start_ps) as delay_ps, count(*) as launches
from edge
join event call on call.id = edge.from_event
join event kernel on kernel.id = edge.to_event
where edge.kind = 'launch'
group by kernel.name
order by delay_ps desc
limit 30`,
  },
  {
    title: "Arguments of events, by name",
    query: `select event.name, args.key, args.value, event.id as event
from (select id, name from event order by dur_ps desc limit 20) event, args(event.id)`,
  },
  {
    title: "Threads, the busiest first",
    query: `select thread, busy_ps, top_name, top_name_ps, n_events
from host_thread
order by busy_ps desc`,
  },
  {
    title: "What a change would give",
    query: `select change, new_step_ps, best_ps, worst_ps, limited_by
from what_if
order by new_step_ps`,
  },
  {
    title: "What was sampled of the machine",
    query: `select counter, mean, min, max, n
from hardware
where step is null
order by counter`,
  },
];
