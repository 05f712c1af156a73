use std::io::Write as _;
use std::process::{Command, Stdio};
use std::sync::Arc;

use analyses::Tables;
use analyses::code_site::Site;
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use trace::TraceBuilder;

use super::{CHANGES, Change, NoDiff, diff_below, edit};

/// A site in a source in which `¦` stands behind the call.
fn site(kind: &str, marked: &str) -> (String, Site) {
    let at = marked.find('¦').unwrap();
    let text = marked.replacen('¦', "", 1);
    let line = text[..at].matches('\n').count() as i64 + 1;
    let start = text[..at].rfind('\n').map_or(0, |it| it + 1);
    let site = Site {
        end_col: Some((at - start) as i64),
        text: text[start..].lines().next().unwrap_or_default().to_owned(),
        ..Site::at_line(kind, "train.py", line)
    };
    (text, site)
}

fn lines_of(diff: &str) -> Vec<&str> {
    let is_change =
        |it: &&str| it.starts_with(['-', '+']) && !it.starts_with("---") && !it.starts_with("+++");
    diff.lines().filter(is_change).collect()
}

/// The lines of the diff that take away and add; the edited source is real Python, and `git apply`
/// makes it.
#[track_caller]
fn check(change: &str, kind: &str, marked: &str, expected: &[&str]) {
    let (text, site) = site(kind, marked);
    let (edited, diff) =
        edit(text.clone(), Change::parse(change).unwrap(), &site, "train.py").unwrap();
    assert_eq!(lines_of(&diff), expected, "{diff}");
    check_applies(&text, &edited, &diff);
    is_python(&[&edited]);
}

#[track_caller]
fn refuse(change: &str, kind: &str, marked: &str, why: &str) {
    let (text, site) = site(kind, marked);
    let change = Change::parse(change).unwrap();
    assert_eq!(edit(text, change, &site, "train.py").unwrap_err(), why);
}

#[track_caller]
fn check_applies(old: &str, new: &str, diff: &str) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("train.py");
    std::fs::write(&path, old).unwrap();
    let mut git = Command::new("git");
    git.args(["apply", "--whitespace=nowarn", "-"]).current_dir(folder.path());
    // Not as a part of the repository around it.
    git.env("GIT_CEILING_DIRECTORIES", folder.path().parent().unwrap());
    let Ok(mut git) = git.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn() else { return };
    git.stdin.take().unwrap().write_all(diff.as_bytes()).unwrap();
    let done = git.wait_with_output().unwrap();
    assert!(done.status.success(), "{}\n{diff}", String::from_utf8_lossy(&done.stderr));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), new, "{diff}");
}

/// Asks Python, where there is one, whether these parse.
#[track_caller]
fn is_python(sources: &[&str]) {
    let program = "import ast, json, sys\nfor it in json.load(sys.stdin): ast.parse(it)";
    python(program, &serde_json::json!(sources));
}

#[track_caller]
fn python(program: &str, input: &serde_json::Value) {
    let mut python = Command::new("python3");
    python.args(["-c", program]).stdin(Stdio::piped()).stderr(Stdio::piped());
    let Ok(mut python) = python.spawn() else { return };
    python.stdin.take().unwrap().write_all(input.to_string().as_bytes()).unwrap();
    let done = python.wait_with_output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

const TF: &str = "import tensorflow as tf\n";

#[test]
fn a_map_runs_in_parallel() {
    for (before, after) in [
        (
            "ds = ds.map(augment)¦.batch(32)",
            "ds = ds.map(augment, num_parallel_calls=tf.data.AUTOTUNE).batch(32)",
        ),
        (
            "ds = ds.map(lambda x, y: (f(x), y))¦  # (",
            "ds = ds.map(lambda x, y: (f(x), y), num_parallel_calls=tf.data.AUTOTUNE)  # (",
        ),
        ("ds = ds.map(f).map(g)¦", "ds = ds.map(f).map(g, num_parallel_calls=tf.data.AUTOTUNE)"),
        ("ds = ds.map(f)¦.map(g)", "ds = ds.map(f, num_parallel_calls=tf.data.AUTOTUNE).map(g)"),
        (
            "ds = ds.map(f, num_parallel_calls=None)¦",
            "ds = ds.map(f, num_parallel_calls=tf.data.AUTOTUNE)",
        ),
        ("ds = ds.map(f, )¦", "ds = ds.map(f, num_parallel_calls=tf.data.AUTOTUNE, )"),
        (
            "ds = ds.map(map_func=f[')'])¦",
            "ds = ds.map(map_func=f[')'], num_parallel_calls=tf.data.AUTOTUNE)",
        ),
    ] {
        let (old, new) = (format!("-{}", before.replace('¦', "")), format!("+{after}"));
        check("parallel-map", "dataset.map", &format!("{TF}{before}\n"), &[&old, &new]);
    }
}

#[test]
fn arguments_over_several_lines_keep_their_layout() {
    let text =
        format!("{TF}ds = ds.map(\n    augment,  # a comment (with a bracket\n)¦.batch(2)\n");
    check("parallel-map", "dataset.map", &text, &["+    num_parallel_calls=tf.data.AUTOTUNE,"]);
    let text = format!("{TF}ds = ds.map(\n    augment  # a comment\n)¦\n");
    check(
        "parallel-map",
        "dataset.map",
        &text,
        &[
            "-    augment  # a comment",
            "+    augment, num_parallel_calls=tf.data.AUTOTUNE  # a comment",
        ],
    );
    let text = "import tensorflow as tf\r\nds = ds.map(\r\n    augment,\r\n)¦\r\n";
    check("parallel-map", "dataset.map", text, &["+    num_parallel_calls=tf.data.AUTOTUNE,"]);
}

#[test]
fn a_map_stays_where_it_is_not_certain() {
    let refuse = |line: &str, why: &str| {
        refuse("parallel-map", "dataset.map", &format!("{TF}{line}\n"), why)
    };
    refuse("ds = ds.map(f, num_parallel_calls=4)¦", "num_parallel_calls=4 is already given");
    refuse(
        "ds = ds.map(f, num_parallel_calls=tf.data.AUTOTUNE)¦",
        "num_parallel_calls=tf.data.AUTOTUNE is already there",
    );
    refuse("ds = ds.map(*args)¦", "its arguments are not plain: a generator, * or **");
    refuse("ds = ds.map(f, **kw)¦", "its arguments are not plain: a generator, * or **");
    refuse("ds = ds.map(f, 4)¦", "map has more than one argument without a name");
    refuse("ds = load(f)¦", "map is called inside load, which is not your code");
    refuse("ds = ds.map(f)¦\ntf = 3", "the name tf is used for something else too");
    super::tests::refuse(
        "parallel-map",
        "dataset.map",
        "from tensorflow import data\nds = ds.map(f)¦\n",
        "the file does not import tensorflow under a name",
    );
    super::tests::refuse(
        "parallel-map",
        "dataset.batch",
        "ds.batch(2)¦\n",
        "this line is no call of map",
    );
}

#[test]
fn without_columns_one_call_of_a_line_is_found() {
    let find = |line: &str| {
        let (text, site) = site("dataset.map", &format!("{TF}{line}¦\n"));
        edit(text, Change::ParallelMap, &Site { end_col: None, ..site }, "train.py").map(|it| it.0)
    };
    assert!(find("ds = ds.map(f).batch(2)").unwrap().contains(".map(f, num_parallel_calls"));
    assert_eq!(find("ds = ds.map(f).map(g)").unwrap_err(), "this line has several calls of map");
    assert_eq!(find("ds = load()").unwrap_err(), "the call of map was not found on this line");
}

#[test]
fn stages_are_added_behind_a_call() {
    let line = |change: &str, kind: &str, before: &str, after: &str| {
        let (old, new) = (format!("-{}", before.replace('¦', "")), format!("+{after}"));
        check(change, kind, &format!("{TF}{before}\n"), &[&old, &new]);
    };
    line(
        "prefetch",
        "dataset.batch",
        "ds = ds.batch(2)¦",
        "ds = ds.batch(2).prefetch(tf.data.AUTOTUNE)",
    );
    line(
        "prefetch",
        "dataset.batch",
        "return_ = (ds.batch(2)¦, 1)",
        "return_ = (ds.batch(2).prefetch(tf.data.AUTOTUNE), 1)",
    );
    line("cache", "dataset.map", "ds = ds.map(f)¦.batch(2)", "ds = ds.map(f).cache().batch(2)");
    line(
        "parallel-interleave",
        "dataset.interleave",
        "ds = ds.interleave(read, cycle_length=4)¦",
        "ds = ds.interleave(read, cycle_length=4, num_parallel_calls=tf.data.AUTOTUNE)",
    );
    let chain = format!("{TF}ds = (\n    ds.map(f)\n    .batch(2)¦  # two\n)\n");
    check("prefetch", "dataset.batch", &chain, &["+    .prefetch(tf.data.AUTOTUNE)"]);
    let chain = format!("{TF}ds = ds.map(f) \\\n    .batch(2)¦\n");
    check(
        "prefetch",
        "dataset.batch",
        &chain,
        &["-    .batch(2)", "+    .batch(2).prefetch(tf.data.AUTOTUNE)"],
    );
    refuse("cache", "dataset.map", "ds.map(f)¦.cache()\n", "cache is already there");
    refuse(
        "prefetch",
        "dataset.prefetch",
        &format!("{TF}ds.prefetch(1)¦\n"),
        "prefetch is already there",
    );
    refuse("cache", "tf.function", "f(1)¦\n", "this line makes no dataset");
}

#[test]
fn functions_are_compiled_in_another_way() {
    let body = "def step(x):\n    return x\n";
    let deco = |change: &str, before: &str, after: &str| {
        let (old, new) = (format!("-{}", before.replace('¦', "")), format!("+{after}"));
        check(change, "tf.function", &format!("{TF}{before}\n{body}"), &[&old, &new]);
    };
    deco("reduce-retracing", "@tf.function¦", "@tf.function(reduce_retracing=True)");
    deco("reduce-retracing", "@tf.function()¦", "@tf.function(reduce_retracing=True)");
    deco(
        "jit-compile",
        "@tf.function(autograph=False)¦",
        "@tf.function(autograph=False, jit_compile=True)",
    );
    deco(
        "reduce-retracing",
        "@partial(tf.function, jit_compile=True)¦",
        "@partial(tf.function, jit_compile=True, reduce_retracing=True)",
    );
    deco("jit-compile", "step = tf.function(run)¦", "step = tf.function(run, jit_compile=True)");
    refuse(
        "reduce-retracing",
        "tf.function",
        &format!("@mine.compiled¦\n{body}"),
        "the decorator is not a plain tf.function",
    );
    refuse(
        "reduce-retracing",
        "jax.jit",
        "@jax.jit¦\ndef f(): pass\n",
        "this line makes no tf.function",
    );
}

#[test]
fn a_function_gets_a_decorator() {
    let jit = |text: &str, added: &str| check("jit", "function", text, &[added]);
    jit("import tensorflow as tf\n\ndef step(x):¦\n    return tf.abs(x)\n", "+@tf.function");
    jit(
        "import jax.numpy as jnp, jax\nclass A:\n    @staticmethod\n    def step(x):¦\n        return jnp.abs(x)\n",
        "+    @jax.jit",
    );
    jit(
        "import tensorflow as tf\nclass A:\n    def step(self, x):¦\n        return tf.abs(x)\n",
        "+    @tf.function",
    );
    let no = |text: &str, why: &str| refuse("jit", "function", text, why);
    no(
        "import jax\nclass A:\n  def f(self):¦\n    jax.numpy.abs(1)\n",
        "jax.jit cannot take a method's self",
    );
    no("import jax\ndef f():¦\n  yield jax\n", "a generator cannot be compiled");
    no(
        "import jax\n@cached\ndef f(x):¦\n  return jax.g(x)\n",
        "the function already has a decorator",
    );
    no(
        "import jax, tensorflow as tf\ndef f(x):¦\n  return jax.g(tf.h(x))\n",
        "the function uses both TensorFlow and JAX",
    );
    no(
        "import jax\ndef f(x):¦\n  return x\n",
        "the function uses neither TensorFlow nor JAX by name",
    );
    no("import jax\nx = 1¦\n", "no function begins on this line");
}

#[test]
fn what_needs_its_python_in_every_call_is_not_compiled() {
    let tf = |body: &str, why: &str| {
        let text = format!(
            "import time\nimport numpy as np\nimport tensorflow as tf\nhistory = []\n\n\
             def step(x):¦\n    y = tf.abs(x)\n{body}    return y\n"
        );
        refuse("jit", "function", &text, &format!("step cannot be compiled as it is: {why}"));
    };
    tf("    print(y)\n", "it calls print");
    tf("    history.append(y)\n", "it changes history");
    tf("    y = float(y)\n", "float(…) needs the value of a result");
    tf("    z = y.numpy()\n", ".numpy() needs the value of a result");
    tf("    y = np.abs(y)\n", "it computes with NumPy");
    tf("    began = time.time()\n", "it uses time");
    tf("    w = tf.Variable(y)\n", "it makes variables");
    // A list of its own may grow, and a condition is TensorFlow's to turn into an op.
    check(
        "jit",
        "function",
        "import tensorflow as tf\ndef step(x):¦\n    all = []\n    if x > 0:\n        all.append(tf.abs(x))\n    return all\n",
        &["+@tf.function"],
    );
    let no = |text: &str, why: &str| refuse("jit", "function", text, why);
    no(
        "import tensorflow as tf\ndef show(x):\n    print(x)\ndef step(x):¦\n    show(tf.abs(x))\n",
        "step cannot be compiled as it is: it calls print",
    );
    no(
        "import tensorflow as tf\ndef step(x, n):¦\n    return tf.abs(x) * n\nfor n in range(3):\n    step(x, n)\n",
        "step cannot be compiled as it is: it is called with n, and each number would be traced again",
    );
    no(
        "import jax\ndef step(x):¦\n    if x > 0:\n        return jax.g(x)\n",
        "step cannot be compiled as it is: line 3 decides by a value",
    );
    no(
        "import jax\ndef step(optimizer, x):¦\n    return jax.g(optimizer.update(x))\n",
        "step cannot be compiled as it is: its argument optimizer is more than an array",
    );
    no(
        "import jax\ndef step(x, n):¦\n    for _ in range(n):\n        x = jax.g(x)\n    return x\n",
        "step cannot be compiled as it is: range(n) needs a number",
    );
}

#[test]
fn compile_takes_and_loses_arguments() {
    let line = |change: &str, before: &str, expected: &[&str]| {
        check(change, "keras.compile", before, expected)
    };
    line(
        "no-run-eagerly",
        "model.compile('adam', run_eagerly=True, loss='mse')¦\n",
        &[
            "-model.compile('adam', run_eagerly=True, loss='mse')",
            "+model.compile('adam', loss='mse')",
        ],
    );
    line(
        "no-run-eagerly",
        "model.compile('adam', run_eagerly=True)¦\n",
        &["-model.compile('adam', run_eagerly=True)", "+model.compile('adam')"],
    );
    line(
        "no-run-eagerly",
        "model.compile(run_eagerly=True)¦\n",
        &["-model.compile(run_eagerly=True)", "+model.compile()"],
    );
    line(
        "no-run-eagerly",
        "model.compile(\n    'adam',\n    run_eagerly=True,  # to look at it\n    loss='mse',\n)¦\n",
        &["-    run_eagerly=True,  # to look at it"],
    );
    line(
        "no-run-eagerly",
        "model.compile(\n    'adam',\n    run_eagerly=True\n)¦\n",
        &["-    'adam',", "-    run_eagerly=True", "+    'adam'"],
    );
    line(
        "steps-per-execution",
        "model.compile(\n    'adam',\n)¦\n",
        &["+    steps_per_execution=16,"],
    );
    line(
        "steps-per-execution=8",
        "model.compile('adam', steps_per_execution=1)¦\n",
        &[
            "-model.compile('adam', steps_per_execution=1)",
            "+model.compile('adam', steps_per_execution=8)",
        ],
    );
    line(
        "jit-compile",
        "model.compile('adam')¦\n",
        &["-model.compile('adam')", "+model.compile('adam', jit_compile=True)"],
    );
    refuse(
        "no-run-eagerly",
        "keras.compile",
        "m.compile(run_eagerly=debug)¦\n",
        "run_eagerly=debug is not always True",
    );
    refuse(
        "no-run-eagerly",
        "keras.compile",
        "m.compile('adam')¦\n",
        "this compile has no run_eagerly",
    );
}

#[test]
fn batches_grow() {
    let batch = |change: &str, text: &str, expected: &[&str]| {
        check(change, "dataset.batch", text, expected)
    };
    batch(
        "larger-batch=256",
        "ds = ds.batch(32)¦\n",
        &["-ds = ds.batch(32)", "+ds = ds.batch(256)"],
    );
    batch(
        "larger-batch",
        "ds = ds.batch(batch_size=32)¦\n",
        &["-ds = ds.batch(batch_size=32)", "+ds = ds.batch(batch_size=64)"],
    );
    batch("larger-batch", "SIZE = 32\nds = ds.batch(SIZE)¦\n", &["-SIZE = 32", "+SIZE = 64"]);
    check(
        "larger-batch",
        "torch.DataLoader",
        "x = DataLoader(data, batch_size=8)¦\n",
        &["-x = DataLoader(data, batch_size=8)", "+x = DataLoader(data, batch_size=16)"],
    );
    let no = |text: &str, why: &str| refuse("larger-batch", "dataset.batch", text, why);
    no(
        "SIZE = 32\nif x:\n    SIZE = 64\nds.batch(SIZE)¦\n",
        "the batch size is SIZE, which is not set once to a number in this file",
    );
    no("ds.batch(args.n)¦\n", "the batch size is args.n, which is not a number");
    refuse("larger-batch=16", "dataset.batch", "ds.batch(32)¦\n", "the batch is already of 32");
    let (text, site) = site("dataset.batch", "SIZE = 32\nds.batch(SIZE)¦\n");
    let site = Site { args: "batch_size=128".to_owned(), ..site };
    assert_eq!(
        edit(text, Change::LargerBatch(None), &site, "train.py").unwrap_err(),
        "the run had another batch size than SIZE in this file"
    );
}

#[test]
fn a_call_is_made_now_and_then() {
    let every = |text: &str, expected: &[&str]| check("every-n-steps=50", "line", text, expected);
    every(
        "for step, (x, y) in enumerate(ds):\n    train(x)\n    log.info(f'{step}')¦\n",
        &["-    log.info(f'{step}')", "+    if step % 50 == 0:", "+        log.info(f'{step}')"],
    );
    every(
        "for i in range(n):\n\tprint(\n\t\ti,\n\t)¦\n\ttrain()\n",
        &[
            "-\tprint(",
            "-\t\ti,",
            "-\t)",
            "+\tif i % 50 == 0:",
            "+\t\tprint(",
            "+\t\t\ti,",
            "+\t\t)",
        ],
    );
    let no = |text: &str, why: &str| refuse("every-n-steps", "line", text, why);
    every(
        "for x, y in ds.take(3):\n    log(x)¦\n",
        &[
            "-for x, y in ds.take(3):",
            "-    log(x)",
            "+for step, (x, y) in enumerate(ds.take(3)):",
            "+    if step % 50 == 0:",
            "+        log(x)",
        ],
    );
    every(
        "for i in range(9):\n    train(x)\n    if i % 4 == 3:\n        manager.save()¦\n",
        &["-    if i % 4 == 3:", "+    if i % 50 == 3:"],
    );
    every(
        "for i in range(9):\n    with writer.as_default():\n        tf.summary.scalar('a', x)¦\n        tf.summary.scalar('b', y)\n",
        &[
            "-    with writer.as_default():",
            "-        tf.summary.scalar('a', x)",
            "-        tf.summary.scalar('b', y)",
            "+    if i % 50 == 0:",
            "+        with writer.as_default():",
            "+            tf.summary.scalar('a', x)",
            "+            tf.summary.scalar('b', y)",
        ],
    );
    every(
        "for i in range(9):\n    losses.append(float(loss))¦\n",
        &[
            "-    losses.append(float(loss))",
            "+    if i % 50 == 0:",
            "+        losses.append(float(loss))",
        ],
    );
    no(
        "step = 0\nfor x in ds:\n    log(x)¦\n",
        "the loop around it has no counter of range or enumerate",
    );
    no("for x in a, b:\n    log(x)¦\n", "the loop around it has no counter of range or enumerate");
    no(
        "for i in range(9):\n    if i % 200 == 0:\n        save(i)¦\n",
        "it is done in one of 200 steps already",
    );
    for (line, blamed) in [
        ("losses.append(train_step(x))", "train_step"),
        ("losses.append(run(x))", "run"),
        ("print(float(train(x)))", "train"),
        ("train_step(x).numpy()", "train_step.numpy"),
        ("model(x).numpy()", "model.numpy"),
    ] {
        let why = format!("whether training needs {blamed} in every step is not certain");
        no(&format!("for i in range(9):\n    {line}¦\n"), &why);
    }
    no(
        "for i in range(9):\n    tree.update(leaves)¦\n",
        "whether training needs tree.update in every step is not certain",
    );
    no(
        "for i in range(9):\n    optimizer.apply_and_log(g)¦\n",
        "whether training needs optimizer.apply_and_log in every step is not certain",
    );
    no(
        "for i in range(9):\n    buffer.append(x)¦\n    train(buffer)\n",
        "buffer is read elsewhere, maybe by what trains",
    );
    no(
        "def train():\n    return sum(buffer)\nfor i in range(9):\n    buffer.append(x)¦\n    train()\n",
        "buffer is read elsewhere, maybe by what trains",
    );
    no(
        "for i in range(3):\n    if i:\n        log(i)¦\n",
        "the loop around it has no counter of range or enumerate",
    );
    no("for i in range(3):\n    x = log(i)¦\n", "this line is not only a call");
    no("for i in range(3):\n    i += 1\n    log(i)¦\n", "i is changed inside the loop");
    no(
        "for i in range(3):\n    log('''a\n    b''')¦\n",
        "a string of this line goes over several lines",
    );
    no("log(1)¦\n", "this line is in no loop");
    no("for i in range(3):\n    await log(i)¦\n", "this line is not only a call");
}

#[test]
fn a_loop_inside_the_step_is_not_the_one_that_counts() {
    let text = "for step in range(9):\n    for i in range(3):\n        log(i)¦\n";
    let (text, site) = site("line", text);
    let site = Site { args: "loop=1".to_owned(), ..site };
    assert_eq!(
        edit(text, Change::EveryNSteps(100), &site, "train.py").unwrap_err(),
        "it is inside another loop"
    );
}

#[test]
fn numbers_are_shorter() {
    let text = "x = np.asarray(a, dtype='float64') + tf.cast(b, tf.float64)¦\n";
    check(
        "float32",
        "line",
        text,
        &[
            "-x = np.asarray(a, dtype='float64') + tf.cast(b, tf.float64)",
            "+x = np.asarray(a, dtype='float32') + tf.cast(b, tf.float32)",
        ],
    );
    refuse("float32", "line", "x = 1¦\n", "this line names no float64");
}

#[test]
fn the_last_line_may_lack_its_end() {
    check(
        "larger-batch",
        "dataset.batch",
        "a = 1\nds.batch(2)¦",
        &["-ds.batch(2)", "+ds.batch(4)"],
    );
}

#[test]
fn every_change_has_its_name() {
    for name in CHANGES {
        assert_eq!(Change::parse(name).unwrap().name(), name);
    }
    for wrong in ["nonsense", "jit=3", "larger-batch=0", "larger-batch=x", ""] {
        assert_eq!(Change::parse(wrong), None, "{wrong}");
    }
}

#[test]
fn a_file_that_changed_gets_no_diff() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("sub").join("train.py");
    std::fs::create_dir(file.parent().unwrap()).unwrap();
    let (text, site) = site("dataset.batch", "a = 1\nds = ds.batch(32)¦\nb = 2\n");
    let site = Site { file: file.display().to_string(), ..site };
    let mut out = TraceBuilder::new();
    out.place(Some(i64::MAX / 2));
    let late = Tables::new(Arc::new(out.finish()));
    let early = Tables::new(Arc::new(TraceBuilder::new().finish()));
    let ask = |tables: &Tables, site: &Site| {
        diff_below(folder.path(), tables, Change::LargerBatch(None), site)
    };
    assert!(matches!(ask(&early, &site), Err(NoDiff::Unreadable { .. })));
    std::fs::write(&file, &text).unwrap();
    let diff = ask(&early, &site).unwrap();
    assert!(
        diff.text.starts_with("--- a/sub/train.py\n+++ b/sub/train.py\n@@ -1,3 +1,3 @@\n a = 1\n"),
        "{}",
        diff.text
    );
    // Without a recorded text the file must be older than the run.
    let bare = Site { text: String::new(), ..site.clone() };
    assert!(ask(&late, &bare).is_ok());
    assert!(matches!(ask(&early, &bare), Err(NoDiff::Changed { .. })));
    std::fs::write(&file, format!("# new\n{text}")).unwrap();
    let changed = ask(&late, &site).unwrap_err();
    assert_eq!(changed.to_string(), "train.py:2 has changed since the run\n  hint: capture again");
    let outside = diff_below(&folder.path().join("other"), &early, Change::Cache, &site);
    assert!(matches!(outside, Err(NoDiff::Outside { .. })));
}

/// Chains of calls in many layouts.
fn chain() -> impl Strategy<Value = String> {
    let argument = prop::sample::select(vec![
        "augment",
        "lambda x, y: (x, y)",
        "functools.partial(f, k=')')",
        "lambda s: f\"{s[')']} (\" + '#'",
        "fs['a'](1, 2)",
    ]);
    let layout = prop::sample::select(vec![
        ".map(@)",
        ".map(@,)",
        ".map( @ , deterministic=False)",
        ".map(\n        @,  # one (\n    )",
        ".map(\n        @\n    )",
        ".map(  # why\n        map_func=@,\n        deterministic=True,\n    )",
    ]);
    let one = (layout, argument).prop_map(|(layout, argument)| layout.replace('@', argument));
    let between = prop::sample::select(vec![
        "",
        "\n    ",
        ".batch(2)",
        "\n    .repeat()  # again\n    ",
        "  # )\n    ",
    ]);
    (prop::collection::vec((one, between), 1..4), any::<bool>()).prop_map(|(calls, is_last)| {
        let mut text = "import functools\nimport tensorflow as tf\n\nds = (ds".to_owned();
        let n = calls.len();
        for (at, (call, between)) in calls.into_iter().enumerate() {
            text.push_str(&call);
            let is_marked = at + 1 == n || (at == 0 && !is_last && n > 1);
            if is_marked && !text.contains('¦') {
                text.push('¦');
            }
            text.push_str(between);
        }
        text + ")\nafter = 1\n"
    })
}

/// Undoes what the changes add, and compares: nothing else may be another.
const SAME_BUT: &str = r"
import ast, json, sys

class Undo(ast.NodeTransformer):
    def __init__(self, change):
        self.change, self.n = change, 0

    def visit_Call(self, it):
        self.generic_visit(it)
        kept = [k for k in it.keywords if k.arg != 'num_parallel_calls']
        self.n += len(it.keywords) - len(kept)
        it.keywords = kept
        if self.change in ('cache', 'prefetch') and getattr(it.func, 'attr', '') == self.change:
            self.n += 1
            return it.func.value
        return it

for change, old, new in json.load(sys.stdin):
    undo = Undo(change)
    undone = undo.visit(ast.parse(new))
    assert undo.n == 1, (undo.n, new)
    assert ast.dump(undone) == ast.dump(ast.parse(old)), new
";

#[test]
fn edits_of_any_layout_change_nothing_else() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut cases = Vec::new();
    for at in 0..240 {
        let marked = chain().new_tree(&mut runner).unwrap().current();
        let (text, site) = site("dataset.map", &marked);
        let change = ["parallel-map", "cache", "prefetch"][at % 3];
        let (edited, diff) =
            edit(text.clone(), Change::parse(change).unwrap(), &site, "train.py").unwrap();
        if at < 30 {
            check_applies(&text, &edited, &diff);
        }
        assert!(lines_of(&diff).len() <= 2, "{diff}");
        cases.push((change, text, edited));
    }
    python(SAME_BUT, &serde_json::json!(cases));
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(
        text in "([a-z(){}\\[\\]'\"#@.,=:\\\\ \n]|ds\\.map\\(|f\"|for i in range\\(3\\):\n|    |é){0,60}",
        line in 0i64..8,
        end_col in prop::option::of(0i64..30),
        kind in prop::sample::select(vec!["dataset.map", "dataset.batch", "tf.function", "keras.compile", "line"]),
    ) {
        let site = Site { end_col, ..Site::at_line(kind, "train.py", line) };
        for name in CHANGES {
            let _ = edit(text.clone(), Change::parse(name).unwrap(), &site, "train.py");
        }
    }
}
