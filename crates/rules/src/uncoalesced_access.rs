//! Memory accesses of kernels that fetch more than they use.

use analyses::Tables;

use crate::gpu::{NO_KERNELS, gpu};
use crate::{Rule, Verdict};

rule! {
    /// Kernels fetch memory in pieces they mostly do not use.
    ///
    /// ## Evidence
    /// Sectors a request moves beyond those it needs. Only the device's own counters tell, which
    /// an XPlane profile does not hold: it takes a report of Nsight Compute.
    ///
    /// ## Fix
    /// Let neighbouring threads read neighbouring addresses: another layout (NHWC for tensor
    /// cores), padding, a transpose in shared memory; for compiled kernels, another layout of the
    /// input.
    ///
    /// ## When it is wrong
    /// Gathers and embeddings read where the data says; no layout changes that.
    pub struct UncoalescedAccess = "uncoalesced-access";
}

impl Rule for UncoalescedAccess {
    fn check(&self, tables: &Tables) -> Verdict {
        if gpu(tables.trace()).is_none() {
            return Verdict::unknown(NO_KERNELS);
        }
        Verdict::unknown(
            "it needs hardware counters: a report of `ncu --set full --launch-count 20 -o REPORT CMD`",
        )
    }
}

#[cfg(test)]
mod tests {
    use super::UncoalescedAccess;
    use crate::testing::missing;

    #[test]
    fn kernels_without_counters_cannot_tell() {
        let why = missing(&UncoalescedAccess, "gpu0/s: k 0..10");
        assert!(why.starts_with("it needs hardware counters"), "{why}");
    }

    #[test]
    fn without_kernels_there_is_nothing_to_ask() {
        let why = missing(&UncoalescedAccess, "host/python: train#1 0..100");
        assert_eq!(why, "this profile shows no GPU kernels");
    }
}
