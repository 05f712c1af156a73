//! How many warps of a kernel fit on a multiprocessor at once, of those it could hold.
//!
//! The limits are NVIDIA's, per compute capability, and the rules those of the occupancy
//! calculator that comes with CUDA (`cuda_occupancy.h`): the scarcest of block slots, warp slots,
//! registers and shared memory decides. Which caches the kernel gave up for shared memory is not
//! known: it is taken to have the most it could.

use trace::KernelShape;

/// Full occupancy is 1, and which resource keeps it from that.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Occupancy {
    pub share: f64,
    pub limit: Option<&'static str>,
}

/// What one multiprocessor holds.
struct Multiprocessor {
    warps: u64,
    blocks: u64,
    registers: u64,
    /// Each has its part of the registers, and its own warps.
    partitions: u64,
    shared_bytes: u64,
    /// Shared memory comes in pieces of this size.
    shared_piece: u64,
    /// The system keeps this much for each block.
    shared_reserved: u64,
}

/// Threads of a warp.
/// Source: document, the CUDA programming guide's table of compute capabilities.
const WARP: u64 = 32;
/// Registers come to a warp in pieces of this size.
/// Source: document, NVIDIA's CUDA occupancy calculator.
const REGISTER_PIECE: u64 = 256;
/// A thread has at most so many registers.
/// Source: document, the CUDA programming guide's table of compute capabilities.
const MOST_REGISTERS: u64 = 255;

/// Compute capability (without minor ones: all others), warps, blocks, KiB of shared memory.
type Limits = (i64, &'static [i64], u64, u64, u64);

/// What a multiprocessor holds, by compute capability: the first row that fits. Thor was 10.1 before
/// it was 11.0.
/// Source: document, the CUDA programming guide's table of compute capabilities; from 7.5 on also
/// libcu++'s `arch_traits.h`.
const LIMITS: [Limits; 17] = [
    (3, &[7], 64, 16, 112),
    (3, &[], 64, 16, 48),
    (5, &[0, 3], 64, 32, 64),
    (5, &[2], 64, 32, 96),
    (6, &[0, 2, 3], 64, 32, 64),
    (6, &[1], 64, 32, 96),
    (7, &[0, 2], 64, 32, 96),
    (7, &[5], 32, 16, 64),
    (8, &[0], 64, 32, 164),
    (8, &[7], 48, 16, 164),
    (8, &[6, 8], 48, 16, 100),
    (8, &[9], 48, 24, 100),
    (9, &[], 64, 32, 228),
    (10, &[0, 3], 64, 32, 228),
    (10, &[1], 48, 24, 228),
    (11, &[0], 48, 24, 228),
    (12, &[], 48, 24, 100),
];
/// Registers of a multiprocessor; twice as many in one kind.
/// Source: document, the CUDA programming guide's table of compute capabilities.
const REGISTERS: u64 = 64 << 10;
/// The compute capability with twice the registers.
/// Source: document, the CUDA programming guide's table of compute capabilities.
const MORE_REGISTERS: (i64, i64) = (3, 7);
/// Partitions of a multiprocessor; two in one kind.
/// Source: document, NVIDIA's CUDA occupancy calculator.
const PARTITIONS: u64 = 4;
/// The compute capability with two partitions.
/// Source: document, NVIDIA's CUDA occupancy calculator.
const FEWER_PARTITIONS: (i64, i64) = (6, 0);
/// From this compute capability on, the system keeps 1 KiB of shared memory for each block.
/// Source: document, NVIDIA's CUDA occupancy calculator.
const AMPERE: i64 = 8;
/// Shared memory comes in pieces of this size, before and since Ampere.
/// Source: document, NVIDIA's CUDA occupancy calculator.
const SHARED_PIECE: [u64; 2] = [256, 128];
/// A block has at most so many threads.
/// Source: document, the CUDA programming guide's table of compute capabilities.
const MOST_THREADS: u64 = 1024;

impl Multiprocessor {
    fn of(major: i64, minor: i64) -> Option<Multiprocessor> {
        let is_of = |it: &&Limits| it.0 == major && (it.1.is_empty() || it.1.contains(&minor));
        let &(_, _, warps, blocks, shared_kib) = LIMITS.iter().find(is_of)?;
        let [until_volta, since_ampere] = SHARED_PIECE;
        let is_recent = major >= AMPERE;
        Some(Multiprocessor {
            warps,
            blocks,
            registers: if (major, minor) == MORE_REGISTERS { REGISTERS * 2 } else { REGISTERS },
            partitions: if (major, minor) == FEWER_PARTITIONS { 2 } else { PARTITIONS },
            shared_bytes: shared_kib << 10,
            shared_piece: if is_recent { since_ampere } else { until_volta },
            shared_reserved: if is_recent { 1 << 10 } else { 0 },
        })
    }
}

/// `None` where the launch is not known well enough, or could not have happened.
pub fn occupancy(shape: &KernelShape, (major, minor): (i64, i64)) -> Option<Occupancy> {
    let holds = Multiprocessor::of(major, minor)?;
    let threads = shape.block.iter().try_fold(1_u64, |all, &it| all.checked_mul(it))?;
    let registers = shape.registers.filter(|it| *it <= MOST_REGISTERS)?;
    if threads == 0 || threads > MOST_THREADS {
        return None;
    }
    let warps = threads.div_ceil(WARP);
    let warp_registers = (registers * WARP).next_multiple_of(REGISTER_PIECE);
    let by_registers = match (holds.registers / holds.partitions).checked_div(warp_registers) {
        Some(warps_fit) => warps_fit * holds.partitions / warps,
        None => u64::MAX,
    };
    let shared = shape.static_shared_bytes?.checked_add(shape.dynamic_shared_bytes.unwrap_or(0))?;
    let shared = shared.checked_add(holds.shared_reserved)?;
    let shared = shared.checked_next_multiple_of(holds.shared_piece)?;
    let by_shared = holds.shared_bytes.checked_div(shared).unwrap_or(u64::MAX);

    // Of equals the first: what the author of a kernel can change most easily.
    let (blocks, limit) = [
        (by_registers, "registers"),
        (by_shared, "shared memory"),
        (holds.warps / warps, "block size"),
        (holds.blocks, "blocks"),
    ]
    .into_iter()
    .min_by_key(|it| it.0)?;
    if blocks == 0 {
        return None;
    }
    let share = (blocks * threads) as f64 / (holds.warps * WARP) as f64;
    Some(Occupancy { share, limit: (share < 1.0).then_some(limit) })
}

#[cfg(test)]
mod tests {
    use trace::KernelShape;

    use super::{Occupancy, occupancy};

    fn check(
        capability: (i64, i64),
        (threads, registers, shared): (u64, u64, u64),
        expected: Option<(f64, Option<&'static str>)>,
    ) {
        let shape = KernelShape {
            block: [threads, 1, 1],
            registers: Some(registers),
            static_shared_bytes: Some(shared),
            ..KernelShape::default()
        };
        let expected = expected.map(|(share, limit)| Occupancy { share, limit });
        assert_eq!(occupancy(&shape, capability), expected, "{capability:?} {threads} threads");
    }

    #[test]
    fn the_scarcest_resource_decides() {
        check((7, 0), (256, 32, 0), Some((1.0, None)));
        check((7, 0), (256, 64, 0), Some((0.5, Some("registers"))));
        check((7, 0), (256, 32, 48 << 10), Some((0.25, Some("shared memory"))));
        check((7, 0), (32, 16, 0), Some((0.5, Some("blocks"))));
        check((8, 6), (1024, 32, 0), Some((2.0 / 3.0, Some("block size"))));
        check((7, 5), (1024, 64, 0), Some((1.0, None)));
    }

    #[test]
    fn registers_are_split_over_partitions() {
        // 168 registers are 5376 a warp: three fit into each quarter of 16384.
        check((9, 0), (64, 168, 0), Some((6.0 * 64.0 / 2048.0, Some("registers"))));
        check((9, 0), (64, 200, 0), Some((4.0 * 64.0 / 2048.0, Some("registers"))));
    }

    #[test]
    fn newer_ones_keep_shared_memory_for_the_system() {
        check((8, 0), (128, 32, 31 << 10), Some((5.0 * 128.0 / 2048.0, Some("shared memory"))));
        check((12, 0), (128, 32, 99 << 10), Some((128.0 / 1536.0, Some("shared memory"))));
        check((12, 0), (128, 32, 100 << 10), None);
    }

    #[test]
    fn impossible_launches_are_not_known() {
        check((7, 0), (2048, 32, 0), None);
        check((7, 0), (256, 2_191_500_840, 0), None);
        check((7, 0), (1024, 255, 0), None);
        check((2, 0), (256, 32, 0), None);
    }
}
