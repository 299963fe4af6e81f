"""Runs one script of a session: restores its variables, runs it, and keeps what can be kept.

Variables are kept as pickled data, modules by their names, imported functions and classes by references, and those of scripts by their
sources. What cannot be kept is named in the report, and does not affect the rest.
"""

import ast
import base64
import functools
import importlib
import io
import json
import os
import sys
import traceback
import types

import _bashkit
import _pickle

FOLDER = "/workbench/"
SCRIPT = FOLDER + "script.py"
FILES = os.getcwd()
MAX_VARIABLES_BYTES = int(os.environ.pop("MAX_VARIABLES_BYTES"))
MAX_RESULT_CHARS = int(os.environ.pop("MAX_RESULT_CHARS"))
DROPS_VARIABLES = "DROP_VARIABLES" in os.environ
os.environ.pop("DROP_VARIABLES", None)
# Up to this size of all variables together, one that cannot be restored takes only those with it that share objects with it.
MAX_GROUPED_BYTES = 1 << 20
# Types of what pickle keeps as a reference to a name of a module.
DEFINITIONS = (types.FunctionType, type, functools._lru_cache_wrapper)
# Types of objects that two variables may share without one seeing changes of the other.
UNCHANGEABLE = (str, bytes, int, float, tuple, frozenset, types.BuiltinFunctionType, *DEFINITIONS)


class ToolError(Exception):
    """A call of a tool, or of another function of the host, failed."""


def send(function, body):
    _, _, answer = _bashkit.http("CALL", function, [], body, None)
    return answer


def call_host(function, arguments):
    try:
        return json.loads(send(function, json.dumps(arguments).encode()))
    except (OSError, ValueError) as problem:
        raise ToolError(str(problem)) from None


def run_tool(slug, arguments=None, account=None):
    """Runs a tool of this session and returns its data. Raises ToolError if it fails."""
    return call_host("run_tool", {"slug": slug, "arguments": arguments or {}, "account": account})


def search_tools(*use_cases):
    """Finds tools of this session for use cases in plain words."""
    return call_host("search_tools", {"use_cases": use_cases})


def proxy(toolkit, method, endpoint, body=None, query=None, headers=None):
    """Sends one request with the session's account of a toolkit. Returns status, headers and data."""
    request = {"toolkit": toolkit, "method": method, "endpoint": endpoint, "body": body, "query": query, "headers": headers}
    return call_host("proxy", request)


def upload_file(path, media_type=None):
    """Makes a file of this session a file of the project. Returns its key for arguments of tools, and a link to it."""
    with open(path, "rb") as file:
        content = base64.b64encode(file.read()).decode()
    name = os.path.basename(path)
    return call_host("upload_file", {"name": name, "media_type": media_type, "content": content})


TOOLS = {function.__name__: function for function in (run_tool, search_tools, proxy, upload_file)}
TOOLS["ToolError"] = ToolError
for tool in TOOLS.values():
    tool.__module__ = "workbench"


def fresh_main():
    main = types.ModuleType("__main__")
    main.__file__ = SCRIPT
    vars(main).update(TOOLS)
    sys.modules["__main__"] = main
    workbench = types.ModuleType("workbench")
    vars(workbench).update(TOOLS)
    sys.modules["workbench"] = workbench
    return vars(main)


def define(sources, names):
    """Runs definitions, each as soon as what it uses exists, and returns the names of the rest."""
    left = dict(sources)
    while left:
        before = len(left)
        for name, source in list(left.items()):
            try:
                exec(compile(source, f"<{name}>", "exec"), names)
            except BaseException:
                continue
            del left[name]
        if len(left) == before:
            break
    return left


class PlainData(_pickle.Unpickler):
    """Refuses classes and functions, so that reading runs no code of a script."""

    def find_class(self, module, name):
        raise _pickle.UnpicklingError(f"{module}.{name} is no plain data")


def read_variables():
    """Returns what earlier scripts have left: modules, sources, and groups of data with their names; and all names."""
    try:
        with open(FOLDER + "variables", "rb") as file:
            modules, sources, *groups = PlainData(file).load()
    except FileNotFoundError:
        return {}, {}, [], []
    # Earlier versions have kept one group.
    groups = groups[0] if len(groups) == 1 else [groups]
    names = [*modules, *sources, *(name for _, group in groups for name in group)]
    if not all(isinstance(name, str) for name in names):
        raise TypeError("a name is no text")
    return modules, sources, groups, names


def restore(names):
    """Puts kept variables into the names of the script. Returns the sources of functions and classes, and the lost names."""
    try:
        modules, sources, groups, kept_names = read_variables()
    except BaseException as problem:
        # The script may have written them itself. This one leaves others in their place.
        print(f"The variables of earlier scripts cannot be read and are dropped: {type(problem).__name__}", file=sys.stderr)
        return {}, []
    if DROPS_VARIABLES:
        reason = "reading them ends the interpreter or reaches a limit"
        print(f"The variables of earlier scripts cannot be read and are dropped: {reason}", file=sys.stderr)
        return {}, kept_names
    lost = []
    for name, module in modules.items():
        try:
            names[name] = _pickle.loads(module) if isinstance(module, bytes) else importlib.import_module(module)
        except BaseException:
            lost.append(name)
    left = define(sources, names)
    for data, group in groups:
        try:
            names.update(_pickle.loads(data))
        except BaseException:
            lost.extend(group)
    lost.extend(define(left, names))
    if lost:
        print(f"These variables of earlier scripts cannot be read and are dropped: {', '.join(lost)}", file=sys.stderr)
    # What was restored may have taken files and streams away, without which no script works.
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        os.fstat(stream.fileno())
    os.stat(SCRIPT)
    return sources, lost


def is_defined(value):
    """Says whether a value is a function or class that a script has defined."""
    return isinstance(value, DEFINITIONS) and value.__module__ == "__main__"


class Keeper(_pickle.Pickler):
    """Refuses values that need a function or class of a script whose source is not kept: they could not be restored."""

    kept = {}

    def reducer_override(self, value):
        if is_defined(value) and value.__qualname__.partition(".")[0] not in self.kept:
            raise _pickle.PicklingError(f"{value.__qualname__} is not kept")
        return NotImplemented


def dump(value, kept, parts=None):
    """Returns a value as data. Adds the ids of the objects in it that other values may share to a set."""
    file = io.BytesIO()
    keeper = Keeper(file, 5)
    keeper.kept = kept
    keeper.dump(value)
    if parts is not None and file.tell() <= MAX_GROUPED_BYTES:
        parts.update(id(part) for _, part in keeper.memo.copy().values() if not isinstance(part, UNCHANGEABLE))
    return file.getvalue()


def groups_of(parts):
    """Returns groups of names whose values share objects, from the ids of the objects of each."""
    owners, parents = {}, {name: name for name in parts}

    def first(name):
        while parents[name] != name:
            name = parents[name]
        return name

    for name, ids in parts.items():
        for part in ids:
            parents[first(name)] = first(owners.setdefault(part, name))
    groups = {}
    for name in parts:
        groups.setdefault(first(name), []).append(name)
    return list(groups.values())


def keep(names, sources):
    """Writes what can be kept. Returns the names of the rest."""
    modules, kept, values, sizes, parts, lost = {}, {}, {}, {}, {}, []
    for name, value in list(names.items()):
        if name in TOOLS:
            # The next script has the function of the host under this name.
            if value is not TOOLS[name]:
                lost.append(name)
            continue
        if name.startswith("__"):
            continue
        if isinstance(value, types.ModuleType):
            modules[name] = value.__name__
        elif name in sources and is_defined(value) and value.__qualname__ != "<lambda>":
            kept[name] = sources[name]
        else:
            values[name] = value
    seen = 0
    for name, value in values.items():
        ids = set()
        try:
            data = dump(value, kept, ids if seen <= MAX_GROUPED_BYTES else None)
        except BaseException:
            lost.append(name)
            continue
        seen += len(data)
        if isinstance(value, DEFINITIONS) and not is_defined(value):
            # Decorators and base classes, which must exist before the definitions that use them.
            modules[name] = data
        else:
            sizes[name] = len(data)
            parts[name] = ids
    used = sum(len(source) for source in kept.values())
    for name in sorted(sizes, key=sizes.get):
        used += sizes[name]
        if used > MAX_VARIABLES_BYTES:
            lost.append(name)
            del parts[name]
    groups = []
    for group in groups_of(parts) if seen <= MAX_GROUPED_BYTES else [list(parts)]:
        try:
            groups.append((dump({name: names[name] for name in group}, kept), group))
        except BaseException:
            lost.extend(group)
    send("workbench.keep", _pickle.dumps((modules, kept, groups), 5))
    return lost


def definitions(tree):
    """Returns the sources of the functions and classes that a script defines at its top."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return {node.name: ast.unparse(node) for node in tree.body if isinstance(node, kinds)}


def run(names, tree):
    """Runs a script and returns the text of its last expression, if it ends with one."""
    last = tree.body[-1] if tree.body else None
    if not isinstance(last, ast.Expr):
        exec(compile(tree, SCRIPT, "exec"), names)
        return ""
    tree.body.pop()
    exec(compile(tree, SCRIPT, "exec"), names)
    value = eval(compile(ast.Expression(last.value), SCRIPT, "eval"), names)
    if value is None:
        return ""
    return value if isinstance(value, str) else repr(value)


def show(problem):
    """Prints a traceback that begins with the script."""
    trace = problem.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename != SCRIPT:
        trace = trace.tb_next
    traceback.print_exception(type(problem), problem, trace)


def session():
    report = {"exit_code": 0, "result": "", "error": None, "lost": []}
    names = fresh_main()
    sources, not_restored = restore(names)
    names.update(TOOLS)
    send("workbench.begin", b"")
    # Last, so that no file of the session takes the place of a module.
    sys.path.append(FILES)
    try:
        with open(SCRIPT, encoding="utf-8") as file:
            tree = ast.parse(file.read(), SCRIPT)
        sources.update(definitions(tree))
        report["result"] = run(names, tree)[:MAX_RESULT_CHARS]
    except SystemExit as end:
        code = end.code
        report["exit_code"] = code if isinstance(code, int) else int(code is not None)
        if code is not None and not isinstance(code, int):
            print(code, file=sys.stderr)
    except BaseException as problem:
        report["exit_code"] = 1
        report["error"] = traceback.format_exception_only(problem)[-1].strip()[:MAX_RESULT_CHARS]
        show(problem)
    lost = keep(names, sources)
    report["lost"] = sorted({name for name in not_restored if name not in names}.union(lost))
    # The server reads no JSON with half of a surrogate pair, and would take the report as empty.
    send("workbench.report", json.dumps(report, ensure_ascii=False).encode(errors="replace"))


session()
