//! Which names are those of secrets.

/// Anywhere in a name, however it is written: `DBPASSWORD`, `clientSecret`, `X-Api-Key`.
const ANYWHERE: [&str; 16] = [
    "password",
    "passwd",
    "passphrase",
    "passcode",
    "secret",
    "apikey",
    "accesskey",
    "privatekey",
    "accountkey",
    "signingkey",
    "encryptionkey",
    "sharedaccess",
    "connectionstring",
    "credential",
    "authorization",
    "sessionid",
];

/// The last word of a name: `db_pass`, `--pw`, `X-Amz-Signature`.
const LAST: [&str; 14] = [
    "pass",
    "pwd",
    "pw",
    "auth",
    "oauth",
    "cookie",
    "sig",
    "signature",
    "sas",
    "jwt",
    "bearer",
    "otp",
    "creds",
    "token",
];

/// Words before `token`, `key` and `signature` that make it something of a model or a program.
const HARMLESS_BEFORE: [&str; 59] = [
    // Tokens of a text.
    "cls",
    "eos",
    "bos",
    "pad",
    "mask",
    "sep",
    "unk",
    "class",
    "special",
    "next",
    "per",
    "num",
    "max",
    "min",
    "n",
    "first",
    "last",
    "start",
    "end",
    "stop",
    "dist",
    "distillation",
    "register",
    "word",
    "sub",
    "image",
    "visual",
    "after",
    // Keys of attention, of random numbers, of tables.
    "cache",
    "prng",
    "rng",
    "random",
    "sort",
    "primary",
    "foreign",
    "step",
    "shape",
    "dict",
    "group",
    "query",
    "attention",
    "correlation",
    "compile",
    "compilation",
    "sharding",
    "feature",
    "hash",
    "lookup",
    "partition",
    "search",
    "map",
    "event",
    "dropout",
    "init",
    // Signatures of functions.
    "input",
    "output",
    "call",
    "function",
    "method",
];

/// Whether the value of an argument, a variable or a field of this name is nobody else's business.
pub fn is_secret(name: &str) -> bool {
    // The folder that a shell is in, part of every path of a run.
    if name == "PWD" {
        return false;
    }
    let words = words(name);
    let Some((last, before)) = words.split_last() else { return false };
    let joined = words.concat();
    if ANYWHERE.iter().any(|it| joined.contains(it)) {
        return true;
    }
    let is_harmless = before.iter().any(|it| HARMLESS_BEFORE.contains(&it.as_str()));
    let is_named = LAST.contains(&last.as_str()) || last == "key" || last.ends_with("token");
    is_named && !is_harmless
}

/// `WANDB_API_KEY` as `wandb`, `api`, `key`; `clientSecret` as `client`, `secret`.
fn words(name: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut before = ' ';
    for it in name.chars() {
        let begins = it.is_ascii_uppercase() && before.is_ascii_lowercase();
        if (begins || !it.is_ascii_alphanumeric()) && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        if it.is_ascii_alphanumeric() {
            word.push(it.to_ascii_lowercase());
        }
        before = it;
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::is_secret;

    #[test]
    fn names_of_secrets_are_told_from_names_of_models() {
        for name in [
            "token",
            "HF_TOKEN",
            "hftoken",
            "WANDB_API_KEY",
            "AWS_SECRET_ACCESS_KEY",
            "clientSecret",
            "PGPASSWORD",
            "MYSQL_PWD",
            "pwd",
            "db.pass",
            "X-Amz-Signature",
            "AccountKey",
            "sig",
            "--use-auth",
            "key",
            "ssh_key",
        ] {
            assert!(is_secret(name), "{name}");
        }
        for name in [
            "cls_token",
            "max_tokens",
            "num_tokens",
            "tokenizer",
            "token_embedding",
            "TOKENIZERS_PARALLELISM",
            "prng_key",
            "query_key",
            "monkey",
            "input_signature",
            "passes",
            "bypass_cache",
            "author",
            "PWD",
            "OLDPWD",
            "lr",
            "",
        ] {
            assert!(!is_secret(name), "{name}");
        }
    }
}
