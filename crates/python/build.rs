//! On macOS a module's symbols of Python must be said to be found when it is loaded.

fn main() {
    pyo3_build_config::add_extension_module_link_args();
}
