"""Bounds: what leads past any rules, so that no cell has it while there are some."""


def words(text: str) -> frozenset[str]:
    """Names, written with spaces between them."""
    return frozenset(text.split())


# They hand out the interpreter's own objects or run text as code, so that a rule would hold for nothing.
SHUT = words(
    """__main__ IPython bdb builtins cffi cloudpickle code codeop comm copyreg ctypes cProfile debugpy dill dis
    doctest ensurepip faulthandler gc imp importlib inspect ipykernel jupyter_client jupyter_core logging.config
    marshal numpy.f2py numpy.ctypeslib pdb pickle pkgutil profile pydoc pytest rlcompleter runpy shelve site
    stack_data symtable taskweaver timeit trace traitlets unittest venv zipimport zmq"""
)
# What a notebook shows things with is no way to its shell.
SHOWING = words("IPython.display IPython.core.display IPython.core.display_functions IPython.lib.display")
# The kernel's machinery, and plugins: their values are found in namespaces, or come from calls.
CLOSED = words("IPython comm ipykernel jupyter_client taskweaver traitlets zmq")
# Names of one and the same module; what is written in C says the first.
SAME = {"posix": "os", "nt": "os", "posixpath": "os.path", "ntpath": "os.path"}
# as people write `pd.read_csv`
SHORT = {"pd": "pandas", "np": "numpy", "plt": "matplotlib.pyplot", "sns": "seaborn"}
# With a list of what is allowed, these need not be on it for their classes to be taken out of a module that is.
HARMLESS = words("abc collections datetime decimal enum fractions functools itertools math numbers re types typing")
SYS = words(
    """argv byteorder exc_info executable exit float_info getdefaultencoding getrecursionlimit getsizeof hexversion
    implementation int_info intern maxsize maxunicode platform prefix setrecursionlimit stderr stdin stdout version
    version_info"""
)
# Builtins that reach anything by its name, run text, or wait for somebody, and what to write instead. `dir` and
# `hasattr` may be: they give names and a yes or no, and no object.
FAMILY = {
    "getattr": "write x.name, or x['name'] for a column",
    "setattr": "write x.name = value, or keep values in a dict",
    "delattr": "write del x.name",
    "vars": "keep values in a dict",
    "globals": "name the variable, or keep values in a dict",
    "locals": "name the variable, or keep values in a dict",
    "eval": "write the expression out; ast.literal_eval reads a literal",
    "exec": "write the code out",
    "compile": "write the code out",
    "__import__": "write an import statement",
    "breakpoint": "print what you want to see",
    "input": "nobody can type here; set a variable",
    "help": "print(x.__doc__) shows what is documented",
    "exit": "a cell just ends",
    "quit": "a cell just ends",
    "get_ipython": "write it in Python",
}
# Functions and classes of the same power, wherever a cell comes by them.
POWERS = words(
    """joblib.load numpy.lib.format.read_array numpy.testing.measure numpy.testing.rundocs numpy.testing.runstring
    operator.attrgetter operator.methodcaller pandas.HDFStore pandas.compat._optional.import_optional_dependency
    pandas.read_hdf pandas.read_pickle string.Formatter types.CodeType types.FunctionType typing.ForwardRef
    typing.get_type_hints yaml.FullLoader yaml.UnsafeLoader yaml.unsafe_load"""
)
# What else opens a file, or starts a program, when the first is blocked.
ALIKE = {
    "open": words(
        """_io.open io.open_code io.FileIO codecs.open os.open os.fdopen tokenize.open pathlib.Path.open
        pathlib.Path.read_text pathlib.Path.read_bytes pathlib.Path.write_text pathlib.Path.write_bytes"""
    ),
    "subprocess": words("asyncio.create_subprocess_exec asyncio.create_subprocess_shell"),
}
# Attributes of frames, generators, tracebacks and functions.
INNER = words(
    """ag_await ag_code ag_frame cr_await cr_code cr_frame cr_origin f_back f_builtins f_code f_globals f_locals
    func_closure func_code func_globals gi_code gi_frame gi_yieldfrom tb_frame tb_next"""
)
# Names with two underscores on both sides: attributes that say what something is,
READABLE = words("__name__ __qualname__ __doc__ __version__ __file__ __members__")
# variables that may be read, and those that may be set,
KNOWN = words("__name__ __doc__ __file__ __debug__ __all__ __version__ __author__")
BINDABLE = words("__all__ __version__ __author__")
# and what a class asks of the one that it derives from.
INHERITED = frozenset(
    f"__{name}__"
    for name in words(
        """init new post_init init_subclass repr str bytes format hash bool len iter next reversed contains
        getitem setitem delitem missing enter exit aenter aexit aiter anext await eq ne lt le gt ge add radd
        iadd sub rsub isub mul rmul imul truediv rtruediv floordiv mod pow neg pos abs and or xor invert int
        float index round copy deepcopy prepare set_name get set delete"""
    )
)


def is_dunder(name: str) -> bool:
    """Whether a name is one of Python's own, as `__class__`."""
    return name.startswith("__") and name.endswith("__") and len(name) > 4
