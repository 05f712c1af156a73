//! Copies between host and device hold the step.

use std::collections::BTreeMap;

use analyses::Tables;
use analyses::copy::Copy;
use analyses::what_if::Altered;

use crate::dialect::Edit;
use crate::facts::{Facts, NO_STEPS, facts};
use crate::gpu::NO_DEVICE;
use crate::{Change, Evidence, Finding, Fix, Prediction, Rule, Verdict, WORTH_SAYING};

rule! {
    /// The device waits for copies from or to the host.
    ///
    /// ## Evidence
    /// The time of a step in which a copy from or to the host ran on the device and nothing
    /// computed or communicated under it; how much was copied, how fast, and whether the host's
    /// memory was pageable: such copies go through a staging buffer and block their caller.
    ///
    /// ## Fix
    /// Copy the next batch while this one computes (`prefetch_to_device`, `jax.device_put`
    /// ahead), from pinned memory; send smaller types (uint8 images, cast on the device); fetch
    /// results every N steps; keep on the device what is used again.
    ///
    /// ## When it is wrong
    /// Where the only copy is the first one, of weights or a dataset that then stays; and where a
    /// peer shares the bus, since the copy is then slow for another reason.
    pub struct TransferBound = "transfer-bound";
}

/// Less than one part in so many of the copying is not worth a word.
/// Source: choice, a fifth.
const PART: i64 = 5;

impl Rule for TransferBound {
    fn check(&self, tables: &Tables) -> Verdict {
        let Some(facts) = facts(tables) else {
            return Verdict::unknown(NO_STEPS);
        };
        if !facts.on_device {
            return Verdict::unknown(NO_DEVICE);
        }
        let (to, from) = (facts.of("transfer_in"), facts.of("transfer_out"));
        let cost = to + from;
        let share = facts.share_of(cost);
        if share < WORTH_SAYING {
            return Verdict::Clear;
        }
        let side = match (to, from) {
            _ if from.0 * PART < cost.0 => "to the device",
            _ if to.0 * PART < cost.0 => "from the device",
            _ => "to and from the device",
        };
        let mut finding = Finding::new(
            format!("Copies {side} that overlap with nothing take {}", facts.per_step(cost)),
            cost,
            facts.step,
        );
        let gain = Prediction::of(tables, &Altered::WithoutTransfers);
        let copies = tables.get::<Copy>();
        let mut pageable = false;
        // Devices that are used alike copy alike: one sentence for all of them.
        let mut kinds: BTreeMap<(&str, &str), Vec<usize>> = BTreeMap::new();
        for (row, copy) in copies.iter().enumerate() {
            if ["h2d", "d2h"].contains(&copy.direction) {
                let memory = copy.memory.as_deref().unwrap_or("");
                pageable |= memory.contains("pageable") && copy.total_ps > 0;
                kinds.entry((copy.direction, memory)).or_default().push(row);
            }
        }
        for rows in kinds.into_values() {
            let text = in_words(&rows.iter().map(|&it| &copies[it]).collect::<Vec<_>>());
            finding = finding.evidence(Evidence::text(text).rows("copy", rows));
        }
        if finding.evidence.is_empty() {
            let text = format!("Copies take {}", facts.per_step(cost));
            finding = finding.evidence(Evidence::text(text).steps(
                if to >= from { "transfer_in" } else { "transfer_out" },
                Facts::rows(tables),
            ));
        }
        if to >= from {
            finding = finding.fix(
                Fix::new(Change::DevicePrefetch, "Copy the next batch while this one computes")
                    .edit(Edit::ToDeviceAhead)
                    .gives(gain),
            );
        } else {
            finding = finding.fix(
                Fix::new(
                    Change::EveryNSteps,
                    "Fetch results every N steps, and only the scalars you look at",
                )
                .gives(gain),
            );
        }
        if pageable {
            finding = finding.fix(
                Fix::new(
                    Change::DevicePrefetch,
                    "Copy from pinned memory: pageable memory is staged first and blocks the caller",
                )
                .untold("it depends on the bus of the machine"),
            );
        }
        finding
            .fix(
                Fix::new(
                    Change::FewerCopies,
                    "Keep on the device what is used again, and copy smaller types",
                )
                .untold("it depends on what can stay there"),
            )
            .found()
    }

    fn in_headline(&self) -> Option<&'static str> {
        Some("is spent copying to and from the device")
    }
}

/// `18 copies to the device, pageable to device, 47.2 MB at 5.2 GB/s`.
fn in_words(copies: &[&Copy]) -> String {
    let count: i64 = copies.iter().map(|it| it.count).sum();
    let side = match copies.first().map(|it| it.direction) {
        Some("h2d") => "to the device",
        _ => "from the device",
    };
    let word = if count == 1 { "copy" } else { "copies" };
    let mut text = format!("{count} {word} {side}");
    if let Some(memory) = copies.first().and_then(|it| it.memory.as_ref()) {
        text += &format!(", {memory}");
    }
    let bytes: Option<i64> = copies.iter().map(|it| it.bytes).sum();
    let time: i64 = copies.iter().map(|it| it.total_ps).sum();
    if let Some(bytes) = bytes.filter(|_| time > 0) {
        let rate = bytes as f64 / (time as f64 / 1e12);
        text += &format!(", {:.1} MB at {:.1} GB/s", bytes as f64 / 1e6, rate / 1e9);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::TransferBound;
    use crate::testing::{finding, missing, verdict};
    use crate::{Severity, Verdict};

    #[test]
    fn copies_with_nothing_under_them_hold_the_step() {
        let found = finding(
            &TransferBound,
            "
            host/python: train#1 0..100, train#2 100..200, train#3 200..300
            gpu0/s: MemcpyH2D{bytes=4000000} 10..50, k 50..90, MemcpyH2D 110..150, k 150..190
            ",
        );
        assert_eq!(found.severity, Severity::Medium);
        assert!(found.title.starts_with("Copies to the device"), "{}", found.title);
        assert!(found.evidence[0].text.contains("2 copies to the device"), "{:?}", found.evidence);
    }

    #[test]
    fn copies_under_compute_are_clear() {
        let picture = "
            host/python: train#1 0..100, train#2 100..200, train#3 200..300
            gpu0/s1: k 0..90, k 100..190
            gpu0/s2: MemcpyH2D 10..50, MemcpyH2D 110..150
            ";
        assert_eq!(verdict(&TransferBound, picture), Verdict::Clear);
    }

    #[test]
    fn without_device_it_cannot_know() {
        let picture = "host/python: train#1 0..100, train#2 100..200, train#3 200..300";
        assert_eq!(missing(&TransferBound, picture), "this profile shows no accelerator");
    }
}
