//! Draws a trace and states what a rule says of it.

use std::sync::Arc;

use analyses::Tables;
use trace::testing::draw;

use crate::{Finding, Rule, Verdict};

/// The verdict on a drawing; see [`trace::testing`] for how to draw.
pub fn verdict(rule: &dyn Rule, picture: &str) -> Verdict {
    rule.check(&Tables::new(Arc::new(draw(picture))))
}

/// The finding of a rule that must fire.
#[expect(clippy::panic, reason = "for tests")]
pub fn finding(rule: &dyn Rule, picture: &str) -> Finding {
    match verdict(rule, picture) {
        Verdict::Found(it) => *it,
        other => panic!("{} says {other:?}", rule.name()),
    }
}

/// What a rule that cannot know misses.
#[expect(clippy::panic, reason = "for tests")]
pub fn missing(rule: &dyn Rule, picture: &str) -> String {
    match verdict(rule, picture) {
        Verdict::Unknown(why) => why,
        other => panic!("{} says {other:?}", rule.name()),
    }
}
