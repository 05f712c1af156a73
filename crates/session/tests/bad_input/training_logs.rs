//! Training logs, cut and corrupted.

use super::damage::corrupt;
use super::*;

fn training_log(name: &str) -> Vec<u8> {
    testdata(&format!("captured/scalars/{name}/events.out.tfevents.1.vm"))
}

/// Where each record ends, by the lengths alone.
fn record_ends(file: &[u8]) -> Vec<usize> {
    let mut ends = Vec::new();
    let mut at = 0;
    while at < file.len() {
        let length = u64::from_le_bytes(file[at..at + 8].try_into().unwrap());
        at += length as usize + 16;
        ends.push(at);
    }
    ends
}

#[test]
fn every_prefix_of_a_training_log_can_be_read() {
    let _turn = alone();
    for name in ["torch", "v1", "tf2", "dtypes"] {
        let whole = training_log(name);
        let ends = record_ends(&whole);
        let all = readable(name, &whole);
        let mut before = 0;
        for len in 0..whole.len() {
            case(
                || format!("{name}: prefix of {len} bytes"),
                || {
                    let Ok(session) = check("prefix", &whole[..len]) else {
                        assert!(len <= 12, "what has begun can be read");
                        return;
                    };
                    let n = session.trace().scalars.len();
                    assert!(n >= before && n <= all.trace().scalars.len(), "what came is kept");
                    before = n;
                    let expected =
                        if ends.contains(&len) { vec![] } else { vec![("truncated", 1)] };
                    assert_eq!(notes(session.trace()), expected);
                },
            );
        }
        assert!(before > 0);
    }
}

#[test]
fn every_wrong_byte_of_a_training_log_is_noticed() {
    let _turn = alone();
    let whole = training_log("torch");
    let n = readable("all of it", &whole).trace().scalars.len();
    let mut random = Random(5);
    for at in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << random.below(8);
        case(
            || format!("byte {at}"),
            || {
                let Ok(session) = check("one byte", &bytes) else {
                    assert!(at <= 12, "only its beginning says what a file is");
                    return;
                };
                assert_eq!(notes(session.trace()), [("malformed", 1)]);
                assert!(session.trace().scalars.len() <= n);
            },
        );
    }
}

#[test]
fn corrupted_training_logs_keep_their_promises() {
    let _turn = alone();
    let mut random = Random(21);
    let logs = ["torch", "v1", "tf2", "dtypes"].map(training_log);
    for round in 0..4000_usize {
        let whole = &logs[round % logs.len()];
        let mut bytes = whole.clone();
        // Inside a record, with its sum made right again: the checksums must not be all that
        // stands between nonsense and the reader.
        if round % 2 == 0 {
            let ends = record_ends(whole);
            let number = random.below(ends.len());
            let start = number.checked_sub(1).map_or(0, |it| ends[it]);
            let mut event = whole[start + 12..ends[number] - 4].to_vec();
            corrupt(&mut event, &mut random);
            bytes.splice(start..ends[number], framed(&event));
        } else {
            corrupt(&mut bytes, &mut random);
        }
        case(|| format!("round {round}"), || check("corrupted log", &bytes).is_ok());
    }
}

/// A record, with a sum computed bit by bit.
fn framed(event: &[u8]) -> Vec<u8> {
    let sum = |bytes: &[u8]| {
        let mut sum = !0_u32;
        for byte in bytes {
            sum ^= u32::from(*byte);
            for _ in 0..8 {
                sum = sum >> 1 ^ (0x82F6_3B78 & 0_u32.wrapping_sub(sum & 1));
            }
        }
        (!sum).rotate_right(15).wrapping_add(0xA282_EAD8).to_le_bytes()
    };
    let length = (event.len() as u64).to_le_bytes();
    [&length, sum(&length).as_slice(), event, &sum(event)].concat()
}

#[test]
fn training_logs_that_claim_much_cost_little() {
    let _turn = alone();
    let time = [[0x09].as_slice(), &1e9_f64.to_le_bytes()].concat();
    let value = |body: &[u8]| field(1, body);
    let simple = |tag: &[u8]| [field(1, tag), vec![0x15, 0, 0, 0x80, 0x3F]].concat();
    let log = |values: Vec<u8>| framed(&[time.clone(), field(5, values)].concat());

    let session = readable("the smallest values", &log(value(&[0x15, 0, 0, 0, 0]).repeat(500_000)));
    assert_eq!(session.trace().scalars.len(), 500_000);
    let tags: Vec<Vec<u8>> =
        (0..100_000).map(|it| value(&simple(format!("{it}").as_bytes()))).collect();
    assert_eq!(readable("many tags", &log(tags.concat())).trace().series.len(), 100_000);
    let long = value(&simple(&vec![b'x'; 5 << 20]));
    assert_eq!(readable("a long tag", &log(long)).trace().series[0].tag.len(), 1024);
    let plugins: Vec<Vec<u8>> = (0..100_000)
        .map(|it| {
            let name = format!("{it}");
            let metadata = field(9, field(1, field(1, name.as_bytes())));
            value(&[field(1, name.as_bytes()), metadata, field(8, b"")].concat())
        })
        .collect();
    let session = readable("many plugins", &log(plugins.concat()));
    assert!(session.trace().left_out.len() <= 100);
    assert_eq!(session.trace().left_out.iter().map(|it| it.count).sum::<u64>(), 100_000);
    let records = framed(&time).repeat(200_000);
    assert_eq!(notes(readable("events of nothing", &records).trace()), []);
}
