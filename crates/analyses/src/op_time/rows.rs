//! Makes rows of sums: looks at the names, once per distinct one, and joins what is of one op.

use crate::run_info::frameworks;
use hashbrown::HashMap;
use trace::{AnyOpName, Detail, OpFamily, StrId, Trace};

use super::{EAGERLY, IN_FUNCTION, OpTime, Sum, What, op_of};

/// A row before it is settled.
pub struct Made<'a> {
    side: &'static str,
    name: &'a str,
    op_type: Option<String>,
    family: OpFamily,
    module: Option<StrId>,
    pub sum: Sum,
    pub device_ps: i64,
}

/// What makes rows differ. A kernel may be called like an op, and is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Key<'a> {
    side: &'static str,
    name: &'a str,
    family: OpFamily,
    module: Option<StrId>,
    /// The op stands for its kernel's run.
    eager: bool,
}

pub struct Rows<'a> {
    trace: &'a Trace,
    index: HashMap<Key<'a>, usize>,
    rows: Vec<Made<'a>>,
    /// Whose ops are whose names do not say it.
    untold: OpFamily,
}

/// Whose an op is whose name does not say it.
pub fn untold(trace: &Trace) -> OpFamily {
    OpFamily::untold(&frameworks(trace))
}

impl<'a> Rows<'a> {
    pub fn new(trace: &'a Trace) -> Rows<'a> {
        Rows { trace, index: HashMap::new(), rows: Vec::new(), untold: untold(trace) }
    }

    pub fn of(&mut self, side: &'static str, what: What) -> &mut Made<'a> {
        let Identity { name, op_type, family, module } =
            Identity::of(self.trace, self.untold, what);
        let key = Key { side, name, family, module, eager: matches!(what, What::Eager(_)) };
        let at = *self.index.entry(key).or_insert_with(|| {
            let sum = Sum::NONE;
            self.rows.push(Made { side, name, op_type, family, module, sum, device_ps: 0 });
            self.rows.len() - 1
        });
        &mut self.rows[at]
    }

    /// Device work says which op it is of; host ops of that name have started it.
    pub fn give_host_its_device_time(&mut self) {
        for at in 0..self.rows.len() {
            let Made { side, name, family, sum, .. } = self.rows[at];
            if side == "host" || !family.is_of_framework() {
                continue;
            }
            let host = |eager| {
                let key = Key { side: "host", name, family, module: None, eager };
                self.index.get(&key).copied()
            };
            if let Some(host) = host(false).or_else(|| host(true)) {
                let device_ps = &mut self.rows[host].device_ps;
                *device_ps = device_ps.saturating_add(sum.own);
            }
        }
    }

    pub fn settle(mut self, has_device: bool) -> Vec<OpTime> {
        // An op may be known by the kernels that it launched alone: no event says how it ran itself.
        self.rows.retain(|it| it.sum.count > 0 || it.device_ps > 0);
        self.rows.sort_by(|a, b| {
            let order = |it: &Made<'_>| (it.side == "device", std::cmp::Reverse(it.sum.own));
            order(a).cmp(&order(b)).then_with(|| a.name.cmp(b.name))
        });
        let all = |side| {
            let own = self.rows.iter().filter(|it| it.side == side).map(|it| it.sum.own);
            own.fold(0_i64, i64::saturating_add).max(1) as f64
        };
        let (host, device) = (all("host"), all("device"));
        let rows = self.rows.iter().map(|it| OpTime {
            side: it.side,
            name: it.name.to_owned(),
            op_type: it.op_type.clone(),
            scope: it.family.scope(it.name).to_owned(),
            family: it.family.name(),
            module: it.module.map(|it| self.trace.text(it).to_owned()),
            count: it.sum.count,
            total_ps: it.sum.total,
            self_ps: it.sum.own,
            min_ps: it.sum.min.min(it.sum.max),
            max_ps: it.sum.max,
            mean_ps: it.sum.total.checked_div(it.sum.count).unwrap_or(0),
            eager: match it.sum.ran {
                EAGERLY => Some(true),
                IN_FUNCTION => Some(false),
                _ => None,
            },
            device_ps: (has_device && it.side == "host").then_some(it.device_ps),
            self_share: it.sum.own as f64 / if it.side == "host" { host } else { device },
        });
        rows.collect()
    }
}

/// Which op it is.
struct Identity<'a> {
    name: &'a str,
    op_type: Option<String>,
    family: OpFamily,
    module: Option<StrId>,
}

impl<'a> Identity<'a> {
    fn of(trace: &'a Trace, untold: OpFamily, what: What) -> Identity<'a> {
        let mut module = None;
        let (name, op_type, family) = match what {
            What::Named(name) => named(untold, trace.text(name)),
            What::Eager(call) => {
                let op = AnyOpName::of_call(trace.text(call));
                (op.name, op.op_type, op.family)
            }
            What::Kernel(name, row) => {
                let (name, detail) = (trace.text(name), &trace.details[row as usize]);
                match detail.hlo_category {
                    Some(_) => {
                        module = detail.hlo_module;
                        compiled(trace, name, detail)
                    }
                    None => (name, None, OpFamily::Kernel),
                }
            }
            What::Detailed(row) => {
                let detail = &trace.details[row as usize];
                match (op_of(trace, detail), detail.hlo_op) {
                    (Some(op), _) => named(untold, op),
                    (None, hlo_op) => {
                        module = detail.hlo_module;
                        let name = hlo_op.map_or("", |it| trace.text(it));
                        compiled(trace, name, detail)
                    }
                }
            }
        };
        Identity { name, op_type, family, module }
    }
}

/// The scopes around an op; `None` where it is of a kind that has none.
pub fn scope(trace: &Trace, untold: OpFamily, what: What) -> Option<&str> {
    let it = Identity::of(trace, untold, what);
    it.family.has_scopes().then(|| it.family.scope(it.name))
}

/// The framework's op: name, type, whose it is.
fn named(untold: OpFamily, text: &str) -> (&str, Option<String>, OpFamily) {
    let op = AnyOpName::of(text, untold);
    (op.name, op.op_type, op.family)
}

/// The compiled program's op, the innermost of nested ones: `a::dot.3` is of type `dot`.
fn compiled<'a>(
    trace: &'a Trace,
    text: &'a str,
    detail: &Detail,
) -> (&'a str, Option<String>, OpFamily) {
    let name = text.rsplit("::").next().unwrap_or(text);
    let op_type = match (detail.hlo_category, name.rsplit_once('.')) {
        (Some(category), _) => trace.text(category),
        (None, Some((word, number))) if number.bytes().all(|it| it.is_ascii_digit()) => word,
        (None, _) => name,
    };
    (name, Some(op_type.to_owned()), OpFamily::Compiled)
}
