//! Real profiles, cut and corrupted.

use trace::testing::picture;

use super::*;

#[test]
fn every_prefix_of_a_profile_can_be_read() {
    let _turn = alone();
    let whole = retrace_loop();
    let n_events = readable("all of it", &whole).trace().events.len();
    for len in 0..whole.len() {
        case(
            || format!("prefix of {len} bytes"),
            || {
                let Ok(session) = check("prefix", &whole[..len]) else { return };
                assert!(session.trace().events.len() <= n_events);
            },
        );
    }
    // Cut inside the events, it still has those before the cut, and says so.
    let cut = readable("half", &whole[..whole.len() / 2]);
    assert!(!cut.trace().events.is_empty());
    assert!(cut.trace().notes.iter().any(|it| it.kind == NoteKind::Truncated));
}

#[test]
fn some_prefixes_of_other_profiles_can_be_read() {
    let _turn = alone();
    let files = [
        ("unmarked_loop", testdata("captured/unmarked_loop/plugins/profile/run/host.xplane.pb")),
        ("jax_steps", testdata("captured/jax_steps/plugins/profile/run/host.xplane.pb")),
        ("nccl_two_gpus", synthetic("nccl_two_gpus")),
        ("odd_encodings", synthetic("odd_encodings")),
    ];
    for (name, whole) in files {
        for part in 1..=300 {
            let len = whole.len() * part / 300 - usize::from(part % 7 == 0);
            case(|| format!("{name}, {len} bytes"), || check("prefix", &whole[..len]).is_ok());
        }
    }
}

#[test]
fn twice_gives_the_same() {
    let _turn = alone();
    let whole = retrace_loop();
    let mut random = Random(7);
    for round in 0..50 {
        let mut bytes = whole.clone();
        for _ in 0..round {
            let at = random.below(bytes.len());
            bytes[at] = random.next() as u8;
        }
        let Ok(once) = read(&bytes) else { continue };
        let again = read(&bytes).unwrap();
        assert_eq!(picture(once.trace()), picture(again.trace()), "round {round}");
    }
}

pub(crate) fn corrupt(bytes: &mut Vec<u8>, random: &mut Random) {
    // Numbers at the edges of their types, as varints.
    let edges = [0, 1, 127, 128, i64::MAX, i64::MIN, -1, i64::MAX / 1000, 1 << 60, 1 << 32];
    for _ in 0..random.pick(&[1, 1, 1, 2, 4, 16]) {
        let at = random.below(bytes.len());
        let len = random.below(24).min(bytes.len() - at);
        match random.below(8) {
            0 => bytes[at] ^= 1 << random.below(8),
            1 => bytes[at] = random.next() as u8,
            2 => bytes[at] = random.pick(&[0, 1, 0x7F, 0x80, 0xFF, 0x22, 0x1A, 0x0A]),
            3 => bytes[at..at + len].fill(random.pick(&[0, 0x80, 0xFF])),
            4 => drop(bytes.drain(at..at + len)),
            5 => {
                let piece = bytes[at..at + len].to_vec();
                let to = random.below(bytes.len());
                bytes.splice(to..to, piece);
            }
            // In place of as many bytes, so that lengths around it stay right.
            6 => {
                let number = varint(random.pick(&edges).cast_unsigned());
                let end = (at + number.len()).min(bytes.len());
                bytes.splice(at..end, number);
            }
            _ => {
                let to = random.below(bytes.len());
                bytes.swap(at, to);
            }
        }
        if bytes.is_empty() {
            bytes.push(0x0A);
        }
    }
}

#[test]
fn corrupted_profiles_keep_their_promises() {
    let _turn = alone();
    let files = [
        ("retrace_loop", retrace_loop()),
        ("checkpoint", synthetic("checkpoint")),
        ("cuda_graph", synthetic("cuda_graph")),
        ("nccl_two_gpus", synthetic("nccl_two_gpus")),
        ("rocm", synthetic("rocm")),
        ("tpu", synthetic("tpu")),
        ("unmarked_calls", synthetic("unmarked_calls")),
        ("unmarked_kernels", synthetic("unmarked_kernels")),
        ("warmup", synthetic("warmup")),
    ];
    let mut n_readable = 0;
    for number in 0..24_000_u64 {
        let (name, whole) = &files[number as usize % files.len()];
        let mut random = Random(number * 2 + 1);
        random.next();
        let mut bytes = whole.clone();
        corrupt(&mut bytes, &mut random);
        case(
            || format!("corruption {number} of {name}"),
            || {
                let Ok(tables) = within(name, heap_for(bytes.len()), || read(&bytes)) else {
                    return;
                };
                n_readable += 1;
                invariants::check_steps(&tables);
                if number % 4 == 0 {
                    drop(check(name, &bytes));
                }
            },
        );
    }
    assert!(n_readable > 20_000, "only {n_readable} were read: the cases test nothing");
}

#[test]
fn the_mangled_profile_of_the_corpus_is_refused_or_read_in_part() {
    let _turn = alone();
    let corpus = repo().join("../shared/corpus/xplane/corrupt-utf8-mangled");
    let Ok(entries) = std::fs::read_dir(&corpus) else {
        println!("skipped: the corpus is not here, at {}", corpus.display());
        return;
    };
    for file in entries.map(|it| it.unwrap().path()) {
        if let Ok(session) = check("mangled", &std::fs::read(&file).unwrap()) {
            assert!(!session.trace().notes.is_empty(), "damage is counted");
        }
    }
}
