//! Violations that are known, each a law and a profile. Repairing one removes its entry.

pub const KNOWN: &[(&str, &str)] = &[];
