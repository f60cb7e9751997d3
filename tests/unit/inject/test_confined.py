"""A confined command can't change a file of the user's, and sees what it wrote."""

from __future__ import annotations

import contextlib
import itertools
import sqlite3
import stat
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.unit.inject import writers
from tests.unit.inject.confined import run_confined
from trainmark import landlock
from trainmark.execute.worker import working_copy

BY_KERNEL = pytest.param(
    True,
    id="kernel",
    marks=pytest.mark.skipif(
        not landlock.is_sufficient(), reason="this kernel has no sufficient Landlock"
    ),
)
SHARED_MEMORY = Path("/dev/shm")
WAYS = [BY_KERNEL, pytest.param(False, id="python")]
"""Whether the kernel confines the command, or only Python's functions do."""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A working folder with a large file, its neighbour, and a folder elsewhere."""
    home = tmp_path / "home"
    for name in ("project", "data", "elsewhere"):
        (home / name).mkdir(parents=True)
        (home / name / "model").write_text(writers.BEFORE)
    with (home / "project" / "large").open("wb") as file:
        file.truncate(working_copy._LARGE_BYTES + 1)
    return home


def files(home: Path) -> Mapping[str, tuple[int, bytes]]:
    """Return the mode and the content of every file below a folder."""
    found: dict[str, tuple[int, bytes]] = {}
    for path in sorted(home.rglob("*")):
        content = path.read_bytes() if path.is_file() else b""
        found[str(path.relative_to(home))] = path.lstat().st_mode, content
    return found


PLACES = {
    "a neighbour": "../data",
    "an absolute path": "{home}/elsewhere",
    "the original": "{home}/project",
}


@pytest.mark.parametrize("by_kernel", WAYS)
@pytest.mark.parametrize("place", PLACES)
def test_a_script_sees_what_it_wrote_and_the_user_does_not(
    home: Path, tmp_path: Path, place: str, by_kernel: bool
) -> None:
    for name, folder in itertools.product(writers.WRITERS, ("project", "data", "elsewhere")):
        (home / folder / name).mkdir()
        (home / folder / name / "model").write_text(writers.BEFORE)
    before = files(home)
    words = [sys.executable, writers.__file__, PLACES[place].format(home=home)]
    found = run_confined(words, home / "project", tmp_path / "scratch", by_kernel=by_kernel)
    assert found.returncode == 0, found.stderr
    assert files(home) == before


RELINKED = """
import os, sys
from pathlib import Path
top = Path(sys.argv[1])
for name in ("first", "second"):
    (top / name).mkdir()
    (top / name / "model").write_text(name)
found = [(top / "first" / "model").read_text()]
os.rename(top / "first", top / "earlier")
os.symlink((top / "second").absolute(), top / "first")
found.append((top / "first" / "model").read_text())
os.remove(top / "first")
os.rename(top / "earlier", top / "first")
found.append((top / "first" / "model").read_text())
print(*found)
"""


@pytest.mark.parametrize("by_kernel", WAYS)
@pytest.mark.parametrize("top", [".", "../data", "{home}/elsewhere", "{home}/project"])
def test_a_folder_that_becomes_a_link_is_followed(
    home: Path, tmp_path: Path, top: str, by_kernel: bool
) -> None:
    """The folders without links are remembered, and forgotten in time."""
    words = [sys.executable, "-c", RELINKED, top.format(home=home)]
    found = run_confined(words, home / "project", tmp_path / "scratch", by_kernel=by_kernel)
    assert found.stdout == "first second first\n", found.stderr


COMMANDS = {
    "redirection": 'echo ours > "$0"',
    "append": 'echo ours >> "$0"',
    "removal": 'rm -f "$(readlink -f "$0")"',
    "new file": 'touch "$0.new"',
    "move": 'echo ours > x && mv -f x "$0"',
    "folder": 'mkdir "$0.d"',
    "link": 'ln -s model "$0.l"',
    "daemon": 'setsid sh -c "echo ours > \\"$0\\"" "$0"',
    "truncation": 'truncate -s 0 "$0"',
}


@pytest.mark.parametrize("by_kernel", [BY_KERNEL])
@pytest.mark.parametrize("place", ["../data/model", "{home}/elsewhere/model", "large"])
def test_the_kernel_refuses_what_other_programs_write(
    home: Path, tmp_path: Path, place: str, by_kernel: bool
) -> None:
    before = files(home)
    every = "\n".join(COMMANDS.values())
    words = ["sh", "-c", every, place.format(home=home)]
    found = run_confined(words, home / "project", tmp_path / "scratch", by_kernel=by_kernel)
    assert "denied" in found.stderr
    assert files(home) == before


@pytest.mark.parametrize("by_kernel", [BY_KERNEL])
def test_what_is_refused_is_a_permission_error(home: Path, tmp_path: Path, by_kernel: bool) -> None:
    script = f"import io; io.FileIO({str(home / 'elsewhere' / 'model')!r}, 'w')"
    words = [sys.executable, "-c", script]
    found = run_confined(words, home / "project", tmp_path / "scratch", by_kernel=by_kernel)
    assert "PermissionError" in found.stderr


@pytest.mark.parametrize("by_kernel", [BY_KERNEL])
def test_no_device_is_made_removed_or_replaced(home: Path, tmp_path: Path, by_kernel: bool) -> None:
    command = (
        "rm -f /dev/null; mv /dev/null /dev/none; echo ours > x; mv -f x /dev/null; "
        "echo ours > /dev/null"
    )
    found = run_confined(
        ["sh", "-c", command], home / "project", tmp_path / "scratch", by_kernel=by_kernel
    )
    assert found.returncode == 0
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)


@pytest.mark.parametrize("by_kernel", WAYS)
def test_python_does_not_replace_a_device(home: Path, tmp_path: Path, by_kernel: bool) -> None:
    script = (
        "import os\n"
        "open('new', 'w').close()\n"
        "for does in (os.remove, lambda p: os.replace('new', p), lambda p: os.chmod(p, 0)):\n"
        "    try: does('/dev/null')\n"
        "    except PermissionError: print('refused')\n"
        "open('/dev/null', 'w').write('ours')\n"
    )
    words = [sys.executable, "-c", script]
    found = run_confined(words, home / "project", tmp_path / "scratch", by_kernel=by_kernel)
    assert found.stdout.split() == ["refused"] * 3, found.stderr
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder in shared memory with two files."""
    if not SHARED_MEMORY.is_dir():
        pytest.skip("this system has no such folder")
    with tempfile.TemporaryDirectory(dir=SHARED_MEMORY) as folder:
        for name in ("kept", "removed"):
            (Path(folder) / name).write_text(writers.BEFORE)
        yield Path(folder)


@pytest.mark.parametrize("by_kernel", WAYS)
def test_older_files_in_shared_memory_stay(
    home: Path, tmp_path: Path, shared: Path, by_kernel: bool
) -> None:
    script = (
        "import os, tempfile\n"
        "from pathlib import Path\n"
        f"shared = Path({str(shared)!r})\n"
        "(shared / 'kept').write_text('ours')\n"
        "(shared / 'removed').unlink()\n"
        "(shared / 'new').write_text('ours')\n"
        "print(sorted(each.name for each in shared.iterdir()), (shared / 'kept').read_text())\n"
        "with tempfile.NamedTemporaryFile(dir='/dev/shm') as file:\n"
        "    print(os.readlink(f'/proc/self/fd/{file.fileno()}') == file.name)\n"
    )
    before = files(shared)
    words = [sys.executable, "-c", script]
    found = run_confined(words, home / "project", tmp_path / "scratch", by_kernel=by_kernel)
    assert found.stdout == "['kept', 'new'] ours\nTrue\n", found.stderr
    assert files(shared) == before


@pytest.mark.parametrize("by_kernel", WAYS)
def test_the_folders_around_the_copy_are_listed(
    home: Path, tmp_path: Path, by_kernel: bool
) -> None:
    script = (
        "import os\n"
        "open('new', 'w').close()\n"
        f"print(sorted(os.listdir('..')), 'new' in os.listdir({str(home / 'project')!r}))\n"
    )
    words = [sys.executable, "-c", script]
    found = run_confined(words, home / "project", tmp_path / "scratch", by_kernel=by_kernel)
    assert found.stdout == "['data', 'elsewhere', 'project'] True\n", found.stderr


IMPORTS = {
    "the folder above": ("..", "import far.near; print(far.near.NAME)"),
    "two folders above": ("../..", "import top; print(top.NAME)"),
    "from its own path": ("{here}/..", "from far import near; print(near.NAME)"),
    "a package around it": ("../..", "from home.far.near import NAME; print(NAME)"),
    "a module of the package that lies in the copy": (
        "../..",
        "from home.project.own import NAME; print(NAME)",
    ),
    "an archive": ("../packed.zip", "import packed; print(packed.NAME)"),
    "the absolute original": ("{original}", "import own; print(own.NAME)"),
    "another folder": ("{original}/../../../elsewhere", "import other; print(other.NAME)"),
    "after a change of folder": (
        "",
        "import os; os.chdir('..'); import far.near as n; print(n.NAME)",
    ),
    "a file": (
        "",
        "from importlib.util import module_from_spec as make, spec_from_file_location as find\n"
        "spec = find('top', '../../top.py'); top = make(spec); spec.loader.exec_module(top)\n"
        "print(top.NAME)",
    ),
    "a file that is run": ("", "import runpy; print(runpy.run_path('../../top.py')['NAME'])"),
    "a process": (
        "",
        "import subprocess\n"
        "program = 'import sys; sys.path.append(\"../..\"); import top; print(top.NAME)'\n"
        "subprocess.run([sys.executable, '-c', program], check=True)",
    ),
}


@pytest.mark.parametrize("by_kernel", WAYS)
@pytest.mark.parametrize("how", IMPORTS)
def test_modules_above_the_copy_are_imported(tmp_path: Path, how: str, by_kernel: bool) -> None:
    top = tmp_path / "repository"
    project = top / "home" / "project"
    names = {
        top / "top.py": "top",
        top / "home" / "far" / "near.py": "near",
        project / "own.py": "own",
        tmp_path / "elsewhere" / "other.py": "other",
    }
    for file, name in names.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"NAME = {name!r}")
    with zipfile.ZipFile(top / "home" / "packed.zip", "w") as packed:
        packed.writestr("packed.py", "NAME = 'packed'")
    entry, statements = IMPORTS[how]
    script = (
        "import os, sys\n"
        f"entry = {entry!r}.format(here=os.path.abspath('.'), original={str(project)!r})\n"
        "sys.path += [entry] if entry else []\n"
        f"{statements}\n"
    )
    before = files(top)
    words = [sys.executable, "-c", script]
    found = run_confined(words, project, tmp_path / "scratch", by_kernel=by_kernel)
    assert found.stdout.strip() in {*names.values(), "packed"}, found.stderr
    assert files(top) == before


@pytest.mark.parametrize("by_kernel", WAYS)
def test_functions_that_were_imported_earlier_are_replaced(
    home: Path, tmp_path: Path, by_kernel: bool
) -> None:
    path = str(home / "elsewhere" / "model")
    script = (
        "import bz2, glob, pathlib, site\n"
        "site.main()\n"  # it starts the observer, after modules that a .pth file imports
        f"bz2.open({path!r}, 'w').close()\n"
        f"pathlib.Path({path!r}).write_text('ours')\n"
        f"pathlib.Path({path!r}).unlink()\n"
    )
    before = files(home)
    words = [sys.executable, "-S", "-c", script]
    found = run_confined(words, home / "project", tmp_path / "scratch", by_kernel=by_kernel)
    assert (found.returncode, found.stderr) == (0, "")
    assert files(home) == before


@pytest.mark.parametrize("by_kernel", WAYS)
def test_a_replaced_function_is_like_the_real_one(
    home: Path, tmp_path: Path, by_kernel: bool
) -> None:
    script = (
        "import inspect, os, pickle\n"
        "class Accessor: stat = os.stat; open = open\n"
        "Accessor().stat('model')\n"
        "Accessor().open('model').close()\n"
        "for function in (open, os.open, os.stat, os.listdir, os.mkdir):\n"
        "    assert pickle.loads(pickle.dumps(function)) is function\n"
        "    assert 'path' in str(inspect.signature(function)) or function is open\n"
        "assert os.access in os.supports_effective_ids\n"
    )
    words = [sys.executable, "-c", script]
    found = run_confined(words, home / "project", tmp_path / "scratch", by_kernel=by_kernel)
    assert (found.returncode, found.stderr) == (0, "")


@pytest.mark.parametrize("by_kernel", WAYS)
def test_an_import_leaves_nothing_next_to_a_module(
    home: Path, tmp_path: Path, by_kernel: bool
) -> None:
    (home / "elsewhere" / "__pycache__").mkdir()
    (home / "elsewhere" / "module.py").touch()
    before = files(home)
    script = f"import sys; sys.path.append({str(home / 'elsewhere')!r}); import module"
    words = [sys.executable, "-c", script]
    found = run_confined(words, home / "project", tmp_path / "scratch", by_kernel=by_kernel)
    assert found.returncode == 0, found.stderr
    assert files(home) == before


LIBRARIES = {
    "h5py": "with h5py.File(p, 'w') as f: f['a'] = [1, 2]\n"
    "with h5py.File(p, 'a') as f: f['b'] = [3]\n"
    "assert h5py.File(p)['b'][0] == 3 and h5py.is_hdf5(p)",
    "sqlite3": "c = sqlite3.connect(p); c.execute('create table t(a)'); c.commit(); c.close()\n"
    "assert not sqlite3.connect(p).execute('select * from t').fetchall()",
    "torch.profiler": "import torch\n"
    "torch.save({'a': 1}, p); assert torch.load(p) == {'a': 1}\n"
    "torch.jit.script(torch.nn.Linear(1, 1)).save(p); torch.jit.load(p)\n"
    "os.remove(p)\n"
    "torch.UntypedStorage.from_file(p, True, 3).fill_(1)\n"
    "assert open(p, 'rb').read() == b'\\1' * 3\n"
    "with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as trace:\n"
    "    torch.ones(1) + 1\n"
    "trace.export_chrome_trace(p + '.json'); assert 'aten::add' in open(p + '.json').read()",
    "tokenizers": "tokenizers.Tokenizer(tokenizers.models.BPE()).save(p)\n"
    "tokenizers.Tokenizer.from_file(p)",
    "pyarrow.csv": "import pyarrow.parquet\n"
    "table = pyarrow.table({'a': [1]})\n"
    "pyarrow.csv.write_csv(table, p); assert pyarrow.csv.read_csv(p) == table\n"
    "pyarrow.parquet.write_table(table, p); pyarrow.parquet.read_schema(p)\n"
    "pyarrow.create_memory_map(p, 3).write(b'abc')\n"
    "assert pyarrow.memory_map(p).read() == b'abc'",
    "safetensors.numpy": "import numpy\n"
    "safetensors.numpy.save_file({'a': numpy.ones(2)}, p)\n"
    "assert safetensors.numpy.load_file(p)['a'].sum() == 2",
    "numpy": "numpy.save(p + '.npy', numpy.ones(2)); assert numpy.load(p + '.npy').sum() == 2\n"
    "m = numpy.memmap(p, mode='w+', shape=3); m[:] = 1; m.flush()\n"
    "assert numpy.fromfile(p, 'u1').sum() == 3",
}


@pytest.mark.parametrize("by_kernel", WAYS)
@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_library_reads_back_what_it_wrote(
    home: Path, tmp_path: Path, library: str, by_kernel: bool
) -> None:
    pytest.importorskip(library)
    path = home / "elsewhere" / "new"
    script = f"import os, {library}\np = {str(path)!r}\n{LIBRARIES[library]}\nprint('completed')"
    before = files(home)
    words = [sys.executable, "-c", script]
    found = run_confined(words, home / "project", tmp_path / "scratch", by_kernel=by_kernel)
    assert found.stdout.endswith("completed\n"), found.stderr
    assert files(home) == before


DATABASES = {
    "address": "c = sqlite3.connect(f'file:{path}?mode=rw', uri=True)\n",
    "log": "c = sqlite3.connect(path)\n",
}


@pytest.mark.parametrize("by_kernel", WAYS)
@pytest.mark.parametrize("way", DATABASES)
def test_a_database_is_changed_in_a_copy(
    home: Path, tmp_path: Path, way: str, by_kernel: bool
) -> None:
    path = home / "elsewhere" / "a database?"
    make = (
        "import os, sqlite3, sys\n"
        "c = sqlite3.connect(sys.argv[1])\n"
        "c.execute('pragma journal_mode=wal')\n"
        "c.execute('create table t(a)')\n"
        "c.commit()\n"
        "os._exit(0)\n"  # the table is only in the log
    )
    subprocess.run([sys.executable, "-c", make, str(path)], check=True)
    script = (
        "import sqlite3, urllib.parse\n"
        f"path = {str(path)!r}\n"
        f"{DATABASES[way].replace('{path}', '{urllib.parse.quote(path)}')}"
        "c.execute('insert into t values(1)')\n"
        "c.commit()\n"
        "c.close()\n"
        "print(sqlite3.connect(path).execute('select * from t').fetchall())\n"
    )
    before = files(home)
    words = [sys.executable, "-c", script]
    found = run_confined(words, home / "project", tmp_path / "scratch", by_kernel=by_kernel)
    assert found.stdout == "[(1,)]\n", found.stderr
    assert files(home) == before


@pytest.mark.parametrize("by_kernel", WAYS)
def test_a_large_database_can_only_be_read(home: Path, tmp_path: Path, by_kernel: bool) -> None:
    path = home / "elsewhere" / "database"
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("create table t as select zeroblob(65 << 20) as a")
        connection.commit()
    script = (
        "import sqlite3\n"
        f"c = sqlite3.connect({str(path)!r})\n"
        "print(c.execute('select length(a) >> 20 from t').fetchall())\n"
        "c.execute('delete from t')\n"
    )
    before = path.stat().st_mtime_ns
    words = [sys.executable, "-c", script]
    found = run_confined(words, home / "project", tmp_path / "scratch", by_kernel=by_kernel)
    assert found.stdout == "[(65,)]\n"
    assert "readonly database" in found.stderr
    assert path.stat().st_mtime_ns == before


@pytest.mark.slow  # by day, h5py shows the same in a second
@pytest.mark.parametrize("by_kernel", [BY_KERNEL])
def test_keras_reads_back_what_it_wrote(home: Path, tmp_path: Path, by_kernel: bool) -> None:
    pytest.importorskip("keras")
    path = home / "elsewhere" / "new.keras"
    script = (
        "import os\n"
        "os.environ['KERAS_BACKEND'] = 'jax'\n"
        "import keras\n"
        "model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])\n"
        f"model.save({str(path)!r})\n"
        f"model.save_weights({str(path.with_name('new.weights.h5'))!r})\n"
        f"keras.saving.load_model({str(path)!r}, compile=False)\n"
        "print('completed')\n"
    )
    before = files(home)
    words = [sys.executable, "-c", script]
    found = run_confined(words, home / "project", tmp_path / "scratch", by_kernel=by_kernel)
    assert found.stdout.endswith("completed\n"), found.stderr
    assert files(home) == before


@pytest.mark.parametrize("by_kernel", WAYS)
def test_a_large_file_is_not_copied_to_be_changed(
    home: Path, tmp_path: Path, by_kernel: bool
) -> None:
    path = home / "elsewhere" / "huge"
    with path.open("wb") as file:
        file.truncate((1 << 30) + 1)
    words = [sys.executable, "-c", f"open({str(path)!r}, 'r+')"]
    found = run_confined(words, home / "project", tmp_path / "scratch", by_kernel=by_kernel)
    assert "trainmark does not copy 1073741825 bytes" in found.stderr


@pytest.mark.parametrize("by_kernel", [BY_KERNEL])
def test_semaphores_and_temporary_files_work(home: Path, tmp_path: Path, by_kernel: bool) -> None:
    script = (
        "import multiprocessing, tempfile\n"
        "with multiprocessing.get_context('spawn').Pool(1) as pool: print(pool.map(abs, [-1]))\n"
        "print(tempfile.gettempdir())\n"
    )
    words = [sys.executable, "-c", script]
    scratch = tmp_path / "scratch"
    found = run_confined(words, home / "project", scratch, by_kernel=by_kernel)
    assert found.stdout.split() == ["[1]", str(scratch / "tmp")], found.stderr


@pytest.mark.parametrize("by_kernel", WAYS)
def test_the_variable_of_the_working_folder_is_true(
    home: Path, tmp_path: Path, by_kernel: bool
) -> None:
    words = [sys.executable, "-c", "import os; print(os.environ['PWD'] == os.getcwd())"]
    found = run_confined(words, home / "project", tmp_path / "scratch", by_kernel=by_kernel)
    assert found.stdout == "True\n"
