//! Edits that are plain Python, or strobe's own: right for every framework.

use super::{Edit, Word};

pub static WORDS: &[Word] = &[
    Word::code(Edit::TimesLargerBatch, "times-larger-batch", "batch_size = batch_size * {}"),
    Word::code(Edit::KeepNumbers, "keep-numbers", "losses.append(float(loss))"),
    Word::code(Edit::Drop, "drop", "del outputs, grads"),
    Word::code(Edit::CaptureByStrobe, "strobe-run", "strobe run -- python train.py"),
];
