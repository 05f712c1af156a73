//! Samples of the machine, cut and corrupted.

use super::damage::corrupt;
use super::*;

fn samples() -> Vec<u8> {
    let mut text = r#"{"strobe": "hardware", "version": 1, "host": "vm", "pid": 7, "cores": 2, "memory_bytes": 4096, "gpus": [{"name": "NVIDIA T4", "max_sm_clock_mhz": 1590, "power_limit_w": null}], "columns": ["cpu/runnable", "cpu/all", "memory/process", "gpu 0/sm_clock"], "missing": [{"what": "cpu/clock", "why": "none"}]}"#
        .to_owned();
    text.push('\n');
    for row in 0..40_i64 {
        let time = 1_794_806_400_000_000_000 + row * 50_000_000;
        text += &format!("[{time},{row},0.{row},{}e3,null]\n", row * 1000);
    }
    text.into_bytes()
}

#[test]
fn every_prefix_of_samples_can_be_read() {
    let _turn = alone();
    let whole = samples();
    assert_eq!(readable("all of it", &whole).trace().counters.len(), 120);
    for len in 0..whole.len() {
        case(
            || format!("prefix of {len} bytes"),
            || {
                let Ok(session) = check("prefix", &whole[..len]) else { return };
                let cut =
                    whole[len - 1] != b'\n' && whole[len - 1] != b']' && whole[len - 1] != b'}';
                let said = session.trace().notes.iter().any(|it| it.kind == NoteKind::Truncated);
                assert_eq!(cut, said, "a cut-off row is said");
            },
        );
    }
}

#[test]
fn corrupted_samples_keep_their_promises() {
    let _turn = alone();
    let whole = samples();
    let mut random = Random(11);
    for round in 0..3000 {
        let mut bytes = whole.clone();
        for _ in 0..=round % 8 {
            corrupt(&mut bytes, &mut random);
        }
        case(|| format!("round {round}"), || check("corrupted samples", &bytes).is_ok());
    }
}

#[test]
fn samples_that_claim_much_cost_little() {
    let _turn = alone();
    let header = |columns: usize| {
        let names: Vec<String> = (0..columns).map(|it| format!("\"c{it}\"")).collect();
        format!(
            "{{\"strobe\": \"hardware\", \"version\": 1, \"columns\": [{}]}}\n",
            names.join(",")
        )
    };
    assert!(check("many columns", header(1_000_000).as_bytes()).is_err());
    let text = header(10_000) + &"[1]\n".repeat(200_000);
    let session = readable("rows without values", text.as_bytes());
    assert_eq!(notes(session.trace()), [("malformed", 200_000)]);
    let text = header(1) + &"[1,1]\n".repeat(500_000);
    assert_eq!(readable("many rows", text.as_bytes()).trace().counters.len(), 500_000);
    let deep = format!("{{\"strobe\": \"hardware\", \"x\": {}", "[".repeat(100_000));
    assert!(check("nested without end", deep.as_bytes()).is_err());
}
