//! `web/src/data/answers.ts`: types of the report and of what the API answers.
//!
//! Made of the structs that are serialised, by reading their source: so their doc comments come
//! along, and nothing is added to the structs themselves. Only what they use of serde is known
//! here; anything else fails.

use std::collections::BTreeSet;

use rules::Severity;
use syn::punctuated::Punctuated;
use syn::{
    Attribute, Expr, Field, Fields, GenericArgument, Item, ItemEnum, ItemStruct, Lit, Meta,
    PathArguments, Token, Type,
};

use crate::{check, comment};

/// Where the structs are, below `crates`.
const SOURCES: [&str; 11] = [
    "session/src/report/json.rs",
    "session/src/compare.rs",
    "server/src/runs.rs",
    "server/src/api.rs",
    "server/src/api/runs.rs",
    "server/src/api/tables.rs",
    "server/src/api/sql.rs",
    "server/src/api/counters.rs",
    "server/src/api/mean_step.rs",
    "server/src/api/evidence.rs",
    "server/src/api/timeline.rs",
];

#[test]
fn the_types_of_answers_are_fresh() {
    let categories = analyses::step_time::CATEGORIES.map(|it| it.0);
    let severities = [Severity::Low, Severity::Medium, Severity::High].map(Severity::name);
    let mut types = vec![
        format!("{}export type Cell = null | number | string | boolean;\n", comment(CELL, "")),
        union("Category", "One of the ten categories of a step.", &categories.map(quoted)),
        union("Severity", "How much a finding matters.", &severities.map(quoted)),
    ];
    let mut names = BTreeSet::new();
    for source in SOURCES {
        let path = format!("{}/../{source}", env!("CARGO_MANIFEST_DIR"));
        let file = syn::parse_file(&std::fs::read_to_string(&path).unwrap()).unwrap();
        for item in &file.items {
            let (name, text) = match item {
                Item::Struct(it) if is_serialised(&it.attrs) => (&it.ident, interface(it)),
                Item::Enum(it) if is_serialised(&it.attrs) => (&it.ident, union_of(it)),
                _ => continue,
            };
            assert!(names.insert(name.to_string()), "two types are called {name}");
            types.push(text);
        }
    }
    check(
        "answers.ts",
        &format!(
            "// The report, and what the API answers (docs/api.md). Made from the code by `UPDATE=1 \
             cargo test`.\n\n{}",
            types.join("\n")
        ),
    );
}

const CELL: &str = "What stands in a cell of a table; null is not known.";

fn is_serialised(attrs: &[Attribute]) -> bool {
    attrs.iter().filter(|it| it.path().is_ident("derive")).any(|it| {
        let traits = it.parse_args_with(Punctuated::<syn::Path, Token![,]>::parse_terminated);
        traits.unwrap().iter().any(|it| it.is_ident("Serialize"))
    })
}

fn interface(it: &ItemStruct) -> String {
    let Fields::Named(fields) = &it.fields else { panic!("{} has no named fields", it.ident) };
    let (flat, own): (Vec<&Field>, Vec<&Field>) =
        fields.named.iter().partition(|it| serde(&it.attrs).is_flat);
    let parents: Vec<String> = flat.iter().map(|it| type_of(&it.ty)).collect();
    let extends = match parents.len() {
        0 => String::new(),
        _ => format!(" extends {}", parents.join(", ")),
    };
    let lines: String = own.into_iter().map(line).collect();
    format!(
        "{}export interface {}{extends} {{\n{lines}}}\n",
        comment(&doc(&it.attrs), ""),
        it.ident
    )
}

fn line(field: &Field) -> String {
    let serde = serde(&field.attrs);
    let name = serde.rename.or_else(|| field.ident.as_ref().map(|it| it.to_string())).unwrap();
    // What is left out is not null as well.
    let (mark, kind) = match serde.is_left_out {
        true => ("?", type_of(argument(&field.ty, "Option").unwrap())),
        false => ("", type_of(&field.ty)),
    };
    format!("{}  {name}{mark}: {kind};\n", comment(&doc(&field.attrs), "  "))
}

/// Names in small letters, or, of an untagged enum, what its variants hold.
fn union_of(it: &ItemEnum) -> String {
    let serde = serde(&it.attrs);
    let variant = |it: &syn::Variant| match &it.fields {
        Fields::Unit if serde.is_lowercase => quoted(it.ident.to_string().to_lowercase()),
        Fields::Unnamed(fields) if serde.is_untagged => type_of(&fields.unnamed[0].ty),
        _ => panic!("the variant {} is of no known kind", it.ident),
    };
    let mut variants: Vec<String> = it.variants.iter().map(variant).collect();
    variants.dedup();
    union(&it.ident.to_string(), &doc(&it.attrs), &variants)
}

fn union(name: &str, doc: &str, variants: &[String]) -> String {
    const WIDTH: usize = 100;
    let one = format!("export type {name} = {};\n", variants.join(" | "));
    let text = match one.len() > WIDTH {
        true => format!("export type {name} =\n  | {};\n", variants.join("\n  | ")),
        false => one,
    };
    format!("{}{text}", comment(doc, ""))
}

fn quoted(text: impl AsRef<str>) -> String {
    format!("\"{}\"", text.as_ref())
}

/// What is said to serde of a type or field.
#[derive(Default)]
struct Serde {
    rename: Option<String>,
    is_flat: bool,
    /// Where it is `None`.
    is_left_out: bool,
    is_lowercase: bool,
    is_untagged: bool,
}

fn serde(attrs: &[Attribute]) -> Serde {
    let mut all = Serde::default();
    for attr in attrs.iter().filter(|it| it.path().is_ident("serde")) {
        let said = attr.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated).unwrap();
        for meta in said {
            let name = meta.path().get_ident().unwrap().to_string();
            let value = match &meta {
                Meta::NameValue(it) => text(&it.value),
                _ => None,
            };
            match (name.as_str(), value.as_deref()) {
                ("rename", Some(name)) => all.rename = Some(name.to_owned()),
                ("flatten", None) => all.is_flat = true,
                ("untagged", None) => all.is_untagged = true,
                ("skip_serializing_if", Some("Option::is_none")) => all.is_left_out = true,
                ("rename_all", Some("lowercase")) => all.is_lowercase = true,
                (name, value) => panic!("serde({name} = {value:?}) is not known here"),
            }
        }
    }
    all
}

fn doc(attrs: &[Attribute]) -> String {
    let docs = attrs.iter().filter(|it| it.path().is_ident("doc"));
    let lines = docs.filter_map(|it| match &it.meta {
        Meta::NameValue(it) => text(&it.value),
        _ => None,
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn text(value: &Expr) -> Option<String> {
    match value {
        Expr::Lit(it) => match &it.lit {
            Lit::Str(it) => Some(it.value()),
            _ => None,
        },
        _ => None,
    }
}

fn type_of(kind: &Type) -> String {
    if let Some(inner) = argument(kind, "Option") {
        return format!("{} | null", type_of(inner));
    }
    if let Some(inner) = argument(kind, "Vec") {
        return list_of(inner);
    }
    match kind {
        Type::Reference(it) => type_of(&it.elem),
        Type::Slice(it) => list_of(&it.elem),
        Type::Tuple(it) => {
            let parts: Vec<String> = it.elems.iter().map(type_of).collect();
            format!("[{}]", parts.join(", "))
        }
        Type::Path(it) => {
            let name = it.path.segments.last().unwrap().ident.to_string();
            match name.as_str() {
                "str" | "String" => "string".to_owned(),
                "bool" => "boolean".to_owned(),
                "u8" | "u32" | "u64" | "usize" | "i64" | "f64" => "number".to_owned(),
                // JSON that is not told further is what stands in a cell.
                "Value" => "Cell".to_owned(),
                _ => name,
            }
        }
        _ => panic!("a type that is not known here"),
    }
}

fn list_of(inner: &Type) -> String {
    let inner = type_of(inner);
    if inner.contains(" | ") && !inner.starts_with('[') {
        format!("({inner})[]")
    } else {
        format!("{inner}[]")
    }
}

/// `T` of `Option<T>`.
fn argument<'a>(kind: &'a Type, of: &str) -> Option<&'a Type> {
    let Type::Path(path) = kind else { return None };
    let last = path.path.segments.last()?;
    let PathArguments::AngleBracketed(arguments) = &last.arguments else { return None };
    match arguments.args.first()? {
        GenericArgument::Type(it) if last.ident == of => Some(it),
        _ => None,
    }
}
