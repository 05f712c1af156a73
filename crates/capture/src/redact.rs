//! Keeps secrets out of what can be shared.

/// In place of a secret.
const HIDDEN: &str = "‹hidden›";

/// Words in the name of an argument or a variable whose value nobody else should read.
const SECRET: [&str; 9] =
    ["token", "secret", "password", "passwd", "apikey", "api_key", "api-key", "credential", "auth"];

pub fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    SECRET.iter().any(|it| name.contains(it)) || name.ends_with("_key") || name.ends_with("-key")
}

/// A command line without the values of secret arguments and without passwords in addresses.
pub fn command(arguments: &[String]) -> Vec<String> {
    let mut hide_next = false;
    let mut out = Vec::with_capacity(arguments.len());
    for argument in arguments {
        if std::mem::take(&mut hide_next) && !argument.starts_with('-') {
            out.push(HIDDEN.to_owned());
            continue;
        }
        match argument.split_once('=') {
            Some((name, _)) if is_secret(name) => out.push(format!("{name}={HIDDEN}")),
            Some((name, value)) => out.push(format!("{name}={}", address(value))),
            None => {
                hide_next = argument.starts_with('-') && is_secret(argument);
                out.push(address(argument));
            }
        }
    }
    out
}

/// `scheme://user:password@host` without who and how.
fn address(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else { return text.to_owned() };
    let host = rest.split('/').next().unwrap_or(rest);
    match host.rsplit_once('@') {
        Some((user, _)) => format!("{scheme}://{HIDDEN}{}", &rest[user.len()..]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::command;

    fn check(arguments: &str, expected: &str) {
        let arguments: Vec<String> = arguments.split(' ').map(str::to_owned).collect();
        assert_eq!(command(&arguments).join(" "), expected);
    }

    #[test]
    fn secrets_are_hidden_and_the_rest_is_kept() {
        check("python train.py --lr=0.1", "python train.py --lr=0.1");
        check("train --api-key abc --steps 3", "train --api-key ‹hidden› --steps 3");
        check("train --WANDB_TOKEN=abc x", "train --WANDB_TOKEN=‹hidden› x");
        check("WANDB_API_KEY=abc train", "WANDB_API_KEY=‹hidden› train");
        check("train --use-auth --steps 3", "train --use-auth --steps 3");
        check("train s3://me:pw@bucket/a", "train s3://‹hidden›@bucket/a");
        check("train --data=https://u:p@h/x", "train --data=https://‹hidden›@h/x");
        check("train https://h/a@b", "train https://h/a@b");
    }
}
