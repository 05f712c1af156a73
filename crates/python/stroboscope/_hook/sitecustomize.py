"""Put in front of a Python program by `strobe run`; waits until a framework is imported.

Python imports a module of this name when it starts. This one must never stop a program from
starting, in whatever Python it meets: it is kept to what any version can read, and costs nothing
until TensorFlow, JAX or PyTorch is imported.
"""

import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))


def _step_aside():
    """Leaves no trace on the path, and runs the sitecustomize that this one hides."""
    sys.path[:] = [it for it in sys.path if os.path.abspath(it or ".") != _HERE]
    ours = sys.modules.pop("sitecustomize", None)
    try:
        import sitecustomize  # noqa: F401  (the user's own, if there is one)
    except ImportError as error:
        if getattr(error, "name", "sitecustomize") != "sitecustomize":
            raise
        sys.modules["sitecustomize"] = ours


def _wait_for_frameworks():
    if sys.version_info < (3, 9) or not os.environ.get("STROBE_RUN_FOLDER"):
        return
    import importlib.util  # noqa: F401 (ready before the first framework is looked for)

    class Watch:
        """Finds nothing itself; asks the others, and says when a framework has been executed."""

        # As FRAMEWORKS in _capture/frameworks.py and LIBRARIES in _capture/sites.py, which cannot
        # be imported before a program.
        names = {"jax", "torch", "tensorflow", "keras", "tf_keras"}  # noqa: RUF012 (no types here)

        @classmethod
        def find_spec(cls, name, path=None, target=None):
            if name not in cls.names:
                return None
            cls.names = cls.names - {name}
            spec = None
            for finder in sys.meta_path:
                if finder is cls or not hasattr(finder, "find_spec"):
                    continue
                spec = finder.find_spec(name, path, target)
                if spec is not None:
                    break
            execute = getattr(getattr(spec, "loader", None), "exec_module", None)
            if execute is None:
                return spec

            def exec_module(module):
                execute(module)
                _arm(name)

            try:
                spec.loader.exec_module = exec_module
            except AttributeError:
                pass
            return spec

    sys.meta_path.insert(0, Watch)


def _arm(framework):
    """Loads the part that captures. Whatever goes wrong there stays there."""
    try:
        capture = sys.modules.get("_stroboscope_capture")
        if capture is None and framework in ("keras", "tf_keras"):
            # Without a framework there is nothing to capture, and if one comes, it asks for them.
            return
        if capture is None:
            import importlib.util

            path = os.path.join(_HERE, "_capture", "__init__.py")
            spec = importlib.util.spec_from_file_location(
                "_stroboscope_capture", path, submodule_search_locations=[os.path.dirname(path)]
            )
            capture = importlib.util.module_from_spec(spec)
            sys.modules["_stroboscope_capture"] = capture
            spec.loader.exec_module(capture)
        capture.framework_imported(framework)
    except Exception as error:
        try:
            folder = os.environ["STROBE_RUN_FOLDER"]
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0)
            out = os.open(os.path.join(folder, "hook-errors.txt"), flags, 0o600)
            text = "%s: %s: %s\n" % (framework, type(error).__name__, error)
            os.write(out, text.encode("utf-8", "backslashreplace"))
            os.close(out)
        except Exception:
            pass


try:
    _wait_for_frameworks()
except Exception:
    pass
_step_aside()
