//! Work on this thread.

/// Handing a few kilobytes to another thread takes longer than reading them.
pub fn on_this_thread() {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).use_current_thread();
    pool.build_global().expect("nobody used the pool before");
}
