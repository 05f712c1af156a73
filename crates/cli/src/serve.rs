//! `strobe serve`: the web page of one or more runs, until it is stopped.

use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};

use server::{Runs, Server};
use tempfile::NamedTempFile;

use crate::output::Output;

/// Open the page of a run in the browser
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Profiles, run folders or log folders; #VIEW opens that view
    #[arg(required = true)]
    paths: Vec<PathBuf>,
    #[command(flatten)]
    at: At,
}

/// Where the page is, and who is told.
#[derive(Debug, clap::Args)]
pub struct At {
    /// The port; by default 7878, or any free one where that is taken
    #[arg(long)]
    port: Option<u16>,
    /// The address to listen on; the printed address holds the token that every reader needs
    #[arg(long, default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    bind: IpAddr,
    /// Do not open a browser
    #[arg(long)]
    no_open: bool,
}

const USUAL_PORT: u16 = 7878;

pub fn run(args: &Args, out: &mut Output) -> anyhow::Result<ExitCode> {
    let (paths, view) = without_view(&args.paths);
    serve(Runs::find(&paths)?, &args.at, view.as_deref(), out)?;
    Ok(ExitCode::SUCCESS)
}

/// Reports name `PATH#input`: the view is part of the page's address, not of the path.
fn without_view(paths: &[PathBuf]) -> (Vec<PathBuf>, Option<String>) {
    let mut view = None;
    let path = |it: &PathBuf| {
        let text = it.to_string_lossy();
        match text.rsplit_once('#') {
            Some((path, of)) if !it.exists() => {
                view = Some(of.to_owned());
                PathBuf::from(path)
            }
            _ => it.clone(),
        }
    };
    (paths.iter().map(path).collect(), view)
}

/// Also the end of the demo.
pub fn serve(runs: Runs, at: &At, view: Option<&str>, out: &mut Output) -> anyhow::Result<()> {
    if !server::has_page() {
        anyhow::bail!(
            "this program was built without its page\n  hint: install Node 20.19 or later and \
             build it again; `strobe report PATH` needs none"
        );
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let server = bind(runs, at).await?;
        let url = server.url() + &view.map(|it| format!("#{it}")).unwrap_or_default();
        writeln!(out, " {url}")?;
        if at.bind.is_unspecified() {
            let hint = out.faint(" From elsewhere: the same with this machine's name.");
            writeln!(out, "{hint}")?;
        }
        let hint = out.faint(" Ctrl-C stops it.");
        writeln!(out, "{hint}")?;
        out.flush()?;
        let wants_browser = !at.no_open && out.is_terminal;
        // The address is printed as well: no browser is no failure. The file goes at the end.
        let _door = if wants_browser { open_browser(&url).ok() } else { None };
        server.serve(stopped()).await?;
        anyhow::Ok(())
    })?;
    // What is still being computed is for nobody.
    runtime.shutdown_background();
    Ok(())
}

async fn bind(runs: Runs, at: &At) -> anyhow::Result<Server> {
    let address = |port| SocketAddr::new(at.bind, port);
    let (port, any) = match at.port {
        Some(port) => (port, false),
        None => (USUAL_PORT, true),
    };
    let listening = match Server::listen(address(port)).await {
        Err(error) if any && error.kind() == std::io::ErrorKind::AddrInUse => {
            Server::listen(address(0)).await
        }
        other => other,
    };
    let listening = listening.map_err(|error| {
        anyhow::anyhow!("cannot listen on {}: {error}\n  hint: try another --port", address(port))
    })?;
    Ok(Server::new(listening, runs)?)
}

/// Ctrl-C, or being asked to end.
async fn stopped() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut ended) = signal(SignalKind::terminate()) {
            tokio::select! {
                _ = tokio::signal::ctrl_c() => (),
                _ = ended.recv() => (),
            }
            return;
        }
    }
    let _ = tokio::signal::ctrl_c().await;
}

/// Opens the page through a file that only this user can read: everybody sees a program's
/// arguments, and the address holds the token.
fn open_browser(url: &str) -> std::io::Result<NamedTempFile> {
    let mut door = tempfile::Builder::new().prefix("strobe-").suffix(".html").tempfile()?;
    door.write_all(door_page(url).as_bytes())?;
    door.flush()?;
    let (program, args): (&str, &[&str]) = match std::env::consts::OS {
        "macos" => ("open", &[]),
        "windows" => ("cmd", &["/c", "start", ""]),
        _ => ("xdg-open", &[]),
    };
    Command::new(program)
        .args(args)
        .arg(door.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    Ok(door)
}

fn door_page(url: &str) -> String {
    let escaped = url.replace('&', "&amp;").replace('"', "&quot;").replace('<', "&lt;");
    format!(
        "<!doctype html>\n<meta charset=\"utf-8\">\n<meta name=\"referrer\" \
         content=\"no-referrer\">\n<meta http-equiv=\"refresh\" content=\"0; url={escaped}\">\n\
         <title>Stroboscope</title>\n<a href=\"{escaped}\">Open the page</a>\n"
    )
}

#[cfg(test)]
mod tests {
    use super::door_page;

    #[test]
    fn the_door_leads_to_the_page_and_nowhere_else() {
        let page = door_page("http://127.0.0.1:1/?token=ab&x#\"><script>alert(1)</script>");
        assert!(
            page.contains("url=http://127.0.0.1:1/?token=ab&amp;x#&quot;>&lt;script>"),
            "{page}"
        );
        assert!(!page.contains("<script"), "{page}");
    }
}
