//! Secrets by what they look like: keys of known services, and words that are too random.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

/// Keys of well-known services, as their own scanners know them.
pub const KEYS: &str = r"(?x)
    (?: hf_[A-Za-z0-9]{16,}
      | api_org_[A-Za-z0-9]{16,}
      | sk-(?:proj|ant|svcacct|admin|or|lf)-[A-Za-z0-9_-]{10,}
      | sk-[A-Za-z0-9]{16,}
      | [sprw][kh](?:_live|_test|sec)_[A-Za-z0-9]{10,}
      | gh[opsur]_[A-Za-z0-9]{16,}
      | github_pat_[A-Za-z0-9_]{16,}
      | gl(?:pat|ptt|dt|rt|cbt|soat|ft|agent|imt)-[A-Za-z0-9_.-]{16,}
      | (?:AKIA|ASIA|AROA|AIDA|ABIA|ACCA)[A-Z0-9]{12,}
      | AIza[A-Za-z0-9_-]{20,}
      | ya29\.[A-Za-z0-9_-]{10,}
      | GOCSPX-[A-Za-z0-9_-]{16,}
      | xox[a-z]-[A-Za-z0-9-]{8,}
      | xapp-[A-Za-z0-9-]{12,}
      | eyJ[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]+){0,2}
      | npm_[A-Za-z0-9]{20,}
      | pypi-[A-Za-z0-9_-]{20,}
      | nvapi-[A-Za-z0-9_-]{20,}
      | gsk_[A-Za-z0-9]{20,}
      | r8_[A-Za-z0-9]{20,}
      | dop_v1_[a-f0-9]{20,}
      | dapi[a-f0-9]{32}
      | shp(?:at|ca|pa|ss)_[a-fA-F0-9]{16,}
      | hvs\.[A-Za-z0-9_-]{16,}
      | SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}
      | lsv2_(?:pt|sk)_[A-Za-z0-9_]{20,}
      | tskey-[a-z]+-[A-Za-z0-9-]{10,}
      | AGE-SECRET-KEY-1[A-Z0-9]{20,}
      | hooks\.slack\.com/services/[A-Za-z0-9/]{10,}
      | discord(?:app)?\.com/api/webhooks/[A-Za-z0-9_/-]{10,}
    )";

pub static KEY: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(&format!(r"\b{KEYS}")).ok());

/// Shorter words are guessed, not told.
const SHORTEST_HEX: usize = 32;
const SHORTEST_RANDOM: usize = 20;

/// Words of random letters, such as keys without a name in front.
pub fn random_words(text: &str, out: &mut Vec<Range<usize>>) {
    if text.len() < SHORTEST_RANDOM {
        return;
    }
    let base = text.as_ptr() as usize;
    for word in text.split(ends_a_word) {
        if is_random(word) {
            let start = word.as_ptr() as usize - base;
            out.push(start..start + word.len());
        }
    }
}

fn ends_a_word(it: char) -> bool {
    it.is_whitespace() || "\"'`,;:()[]{}<>|&?@=\\%$!*^#~".contains(it)
}

/// Whether no person and no compiler would name anything like that.
pub fn is_random(word: &str) -> bool {
    if word.len() < SHORTEST_RANDOM || is_mangled(word) {
        return false;
    }
    let is_hex = word.bytes().all(|it| it.is_ascii_hexdigit());
    if is_hex {
        // Of one case, as hashes and keys are; digits alone are a number.
        let has = |test: fn(&u8) -> bool| word.as_bytes().iter().any(test);
        let letters = has(u8::is_ascii_lowercase) ^ has(u8::is_ascii_uppercase);
        return word.len() >= SHORTEST_HEX && letters && has(u8::is_ascii_digit);
    }
    // `/` and `+` are letters of base64, and `/` is between scopes of ops, whose names are words.
    if word.bytes().all(|it| it.is_ascii_alphanumeric() || b"+/".contains(&it))
        && word.len() >= 2 * SHORTEST_RANDOM
        && is_scrambled(word)
    {
        return true;
    }
    let segments = word.split(|it: char| !it.is_ascii_alphanumeric());
    segments.filter(|it| it.len() >= SHORTEST_RANDOM).any(is_scrambled)
}

/// Names that C++ compilers make are no words either, but begin alike.
fn is_mangled(word: &str) -> bool {
    word.starts_with("_Z") || word.contains("_ZN") || word.contains("_ZSt")
}

/// Capitals, small letters and digits, and hardly any three small letters in a row.
fn is_scrambled(word: &str) -> bool {
    let bytes = word.as_bytes();
    let has = |test: fn(&u8) -> bool| bytes.iter().any(test);
    if !(has(u8::is_ascii_uppercase) && has(u8::is_ascii_lowercase) && has(u8::is_ascii_digit)) {
        return false;
    }
    // Of random letters a fifth are in such a row; of names like `Conv2DBackpropInput` most are.
    let mut in_words = 0;
    let mut run = 0;
    for (at, byte) in bytes.iter().enumerate() {
        if byte.is_ascii_lowercase() {
            run += 1;
        }
        let ends = !byte.is_ascii_lowercase() || at + 1 == bytes.len();
        if ends && run > 0 {
            // With the capital in front.
            in_words += if run >= 3 { run + 1 } else { 0 };
            run = 0;
        }
    }
    in_words * 5 < bytes.len() * 2
}
