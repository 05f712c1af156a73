//! JAX's names on the host.

use super::{Call, Dialect, SiteRole, starts_with_any};
use crate::OpKind;

#[derive(Debug)]
pub struct Jax;

/// A call of a compiled function.
const CALLS: &str = "PjitFunction(";

impl Dialect for Jax {
    fn name(&self) -> &'static str {
        "jax"
    }

    fn title(&self) -> &'static str {
        "JAX"
    }

    fn shows(&self, event: &str) -> bool {
        event.starts_with(CALLS)
    }

    fn fact(&self) -> Option<&'static str> {
        Some("jax_version")
    }

    fn function_of<'a>(&self, name: &'a str) -> Option<&'a str> {
        let within = |it: &&str| name.strip_prefix(it).and_then(|it| it.strip_suffix(')'));
        if let Some(function) = CALLS_OF.iter().find_map(within) {
            return Some(function);
        }
        let program = ["jit_", "pmap_"].iter().find_map(|it| name.strip_prefix(it))?;
        program.split('.').next()
    }

    fn site(&self, kind: &str) -> Option<SiteRole> {
        matches!(kind, "jax.jit" | "jax.pmap").then_some(SiteRole::Function)
    }

    fn is_called_from_python(&self, event: &str) -> bool {
        event.starts_with("PjitFunction")
    }

    fn calls_function(&self, event: &str, kind: OpKind) -> bool {
        kind == OpKind::Runtime && event.starts_with("PjitFunction")
    }

    fn on_host(&self, event: &str) -> Option<OpKind> {
        if starts_with_any(event, COMPILES) {
            return Some(OpKind::Compile);
        }
        starts_with_any(event, RUNTIME).then_some(OpKind::Runtime)
    }

    fn call<'a>(&self, event: &'a str, _kind: OpKind) -> Option<Call<'a>> {
        let function = event.strip_prefix(CALLS)?.strip_suffix(')')?;
        Some(Call::Function(function))
    }

    fn begins_step(&self, event: &str, _kind: OpKind) -> bool {
        event.starts_with(CALLS)
    }
}

/// What is put around a function's name where it is called, and where its ops are named.
const CALLS_OF: &[&str] = &["PjitFunction(", "PmapFunction(", "jit(", "pmap("];
/// Tracing and lowering.
const COMPILES: &[&str] = &["trace_to_jaxpr", "lower_sharding_computation", "lower_jaxpr"];
const RUNTIME: &[&str] = &["PjitFunction", "DevicePut", "shard_args"];
