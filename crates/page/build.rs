//! Says that packages will be fetched, before they are: Cargo shows what a build script says only
//! when it has ended, and this one ends before the server's, which fetches.

#[expect(dead_code, reason = "only the server's build script makes the page")]
#[path = "src/lib.rs"]
mod page;

fn main() {
    let page = page::Page::here();
    for path in page.watched() {
        println!("cargo::rerun-if-changed={}", path.display());
    }
    println!("cargo::rerun-if-env-changed={}", page::LEFT_OUT);
    if page.will_fetch() {
        println!(
            "cargo::warning=the web page is built with npm, which now fetches its packages: that \
             needs the network or a filled cache ({}=1 builds without the page)",
            page::LEFT_OUT
        );
        // No longer true once they are there.
        println!("cargo::rerun-if-changed={}", page.installed().display());
    }
}
