"""Names with a fixed meaning for verification: names that bypass any rules, and exceptions for harmless names."""


def split_names(text: str) -> frozenset[str]:
    """Return the names in a text, separated by white space."""
    return frozenset(text.split())


# Modules that hand out objects of the interpreter, or run text as code.
FORBIDDEN_MODULES = split_names(
    """__main__ IPython bdb builtins cffi cloudpickle code codeop comm copyreg ctypes cProfile debugpy dill dis
    doctest ensurepip faulthandler gc imp importlib inspect ipykernel jupyter_client jupyter_core logging.config
    marshal numpy.f2py numpy.ctypeslib pdb pickle pkgutil profile pydoc pytest rlcompleter runpy shelve site
    stack_data symtable taskweaver timeit trace traitlets unittest venv zipimport zmq"""
)
# Display modules of IPython, which give no access to its shell.
DISPLAY_MODULES = split_names("IPython.display IPython.core.display IPython.core.display_functions IPython.lib.display")
# Packages of the kernel and of plugins: cells may call their objects but not read attributes of them.
OPAQUE_PACKAGES = split_names("IPython comm ipykernel jupyter_client taskweaver traitlets zmq")
# Modules written in C report the first name.
MODULE_ALIASES = {"posix": "os", "nt": "os", "posixpath": "os.path", "ntpath": "os.path"}
# Common short names, as in `pd.read_csv`.
SHORT_NAMES = {"pd": "pandas", "np": "numpy", "plt": "matplotlib.pyplot", "sns": "seaborn"}
# Modules that an allowed module may re-export from, even when the user's list of allowed modules lacks them.
HARMLESS_MODULES = split_names(
    "abc collections datetime decimal enum fractions functools itertools math numbers re types typing"
)
SYS_NAMES = split_names(
    """argv byteorder exc_info executable exit float_info getdefaultencoding getrecursionlimit getsizeof hexversion
    implementation int_info intern maxsize maxunicode platform prefix setrecursionlimit stderr stdin stdout version
    version_info"""
)
# Builtins that reach any object by name, run text or wait for input, with an alternative. `dir` and `hasattr` are
# missing here because they return no object.
FORBIDDEN_BUILTINS = {
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
    "breakpoint": "print the values you want to see",
    "input": "nobody can type here; set a variable",
    "help": "print(x.__doc__) shows the documentation",
    "exit": "a cell ends at its last line",
    "quit": "a cell ends at its last line",
    "get_ipython": "write it in Python",
}
# Functions and classes with the same power, wherever a cell gets them from.
FORBIDDEN_CALLABLES = split_names(
    """joblib.load numpy.lib.format.read_array numpy.testing.measure numpy.testing.rundocs numpy.testing.runstring
    operator.attrgetter operator.methodcaller pandas.HDFStore pandas.compat._optional.import_optional_dependency
    pandas.read_hdf pandas.read_pickle string.Formatter types.CodeType types.FunctionType typing.ForwardRef
    typing.get_type_hints yaml.FullLoader yaml.UnsafeLoader yaml.unsafe_load"""
)
# Functions that do the same as a blocked name: open a file, or start a program.
EQUIVALENTS = {
    "open": split_names(
        """_io.open io.open_code io.FileIO codecs.open os.open os.fdopen tokenize.open pathlib.Path.open
        pathlib.Path.read_text pathlib.Path.read_bytes pathlib.Path.write_text pathlib.Path.write_bytes"""
    ),
    "subprocess": split_names("asyncio.create_subprocess_exec asyncio.create_subprocess_shell"),
}
# Attributes of frames, generators, tracebacks and functions.
FORBIDDEN_ATTRIBUTES = split_names(
    """ag_await ag_code ag_frame cr_await cr_code cr_frame cr_origin f_back f_builtins f_code f_globals f_locals
    func_closure func_code func_globals gi_code gi_frame gi_yieldfrom tb_frame tb_next"""
)
# Dunder names that cells may use: attributes to read, variables to read, variables to set, and methods to inherit.
READABLE_ATTRIBUTES = split_names("__name__ __qualname__ __doc__ __version__ __file__ __members__")
READABLE_VARIABLES = split_names("__name__ __doc__ __file__ __debug__ __all__ __version__ __author__")
SETTABLE_VARIABLES = split_names("__all__ __version__ __author__")
INHERITED_METHODS = frozenset(
    f"__{name}__"
    for name in split_names(
        """init new post_init init_subclass repr str bytes format hash bool len iter next reversed contains
        getitem setitem delitem missing enter exit aenter aexit aiter anext await eq ne lt le gt ge add radd
        iadd sub rsub isub mul rmul imul truediv rtruediv floordiv mod pow neg pos abs and or xor invert int
        float index round copy deepcopy prepare set_name get set delete"""
    )
)


def is_dunder(name: str) -> bool:
    """Return whether Python itself owns a name, as with `__class__`."""
    return name.startswith("__") and name.endswith("__") and len(name) > 4
