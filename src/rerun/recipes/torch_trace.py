# Runs a Python program as it would run without this file, and traces it with torch.profiler. Written by warpscope; may be deleted.
#
#     python [OPTIONS] THIS --seconds N [--after N] --trace FILE  SCRIPT ARGUMENTS...
#     python [OPTIONS] THIS --seconds N [--after N] --trace FILE  -m MODULE ARGUMENTS...
#
# The trace begins when the program has imported torch (or --after seconds later) and ends after --seconds, with the program, or when
# SIGINT, SIGTERM or SIGHUP ends it. {rank} in FILE becomes the rank.

import json
import os
import signal
import sys
import threading
import time
import types
import warnings

NO_TORCH = 97
RANKS = ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID")
HERE = os.path.abspath(__file__)
MAIN = threading.main_thread()
FOLDER = os.getcwd()
# The program's command, without this file.
COMMAND = []


def say(text):
    try:
        sys.stderr.write("warpscope: " + text + "\n")
        sys.stderr.flush()
    except (AttributeError, OSError, ValueError):
        pass


class Tracer:
    """Starts and stops one profile. torch.profiler wants both on one thread, so both happen on the main one."""

    def __init__(self, path, seconds, after):
        self.path, self.seconds, self.after = path, seconds, after
        self.owner = os.getpid()
        self.state = "waiting"  # waiting, ready, tracing, done
        self.profile = None
        self.whole = False
        self.waits = None
        self.began = 0.0
        # A signal that programs do not use, to reach the main thread from the timer. SA_RESTART: no call of the program is cut short.
        self.signal = getattr(signal, "SIGRTMIN", signal.SIGALRM - 9) + 9
        signal.signal(self.signal, lambda *_: self.due())
        signal.siginterrupt(self.signal, False)
        for number in (signal.SIGTERM, signal.SIGHUP):
            # What the caller has ignored (nohup) stays ignored.
            if signal.getsignal(number) == signal.SIG_DFL:
                signal.signal(number, self.ended)

    def timer(self, seconds):
        def ring():
            time.sleep(seconds)
            # A signal that arrives just before a call that waits is handled only after that call: ring again, ever more rarely.
            due, pause = self.state, 0.1
            while MAIN.is_alive() and self.state == due and due in ("ready", "tracing"):
                signal.pthread_kill(MAIN.ident, self.signal)
                time.sleep(pause)
                pause *= 2

        threading.Thread(target=ring, name="warpscope-timer", daemon=True).start()

    def torch_is_there(self):
        if os.getpid() != self.owner or self.state != "waiting":
            return
        self.state = "ready"
        if self.after > 0 or threading.current_thread() is not MAIN:
            self.timer(self.after)
        else:
            self.whole = True
            self.due()

    def due(self):
        if os.getpid() != self.owner:
            return
        if self.state == "ready":
            self.start()
        elif self.state == "tracing" and time.monotonic() - self.began >= self.seconds:
            self.stop("after %g s" % self.seconds)

    def start(self):
        self.state = "done"
        try:
            from torch.profiler import ProfilerActivity, profile, supported_activities

            wanted = (ProfilerActivity.CPU, ProfilerActivity.CUDA)
            known = supported_activities()
            activities = [a for a in wanted if a in known]
            if ProfilerActivity.CUDA not in activities:
                say("this torch traces no GPU here: the trace will hold the CPU side only")
            with warnings.catch_warnings():
                # Newer versions warn of what only profiles with a schedule do.
                warnings.simplefilter("ignore")
                self.profile = profile(activities=activities)
                self.profile.start()
            self.sign()
        except Exception as error:
            say("torch.profiler does not start, the program runs on without: %s: %s" % (type(error).__name__, error))
            return
        self.began = time.monotonic()
        self.state = "tracing"
        self.timer(self.seconds)

    def sign(self):
        # What the trace cannot know by itself: how to run the program again, and that nothing came before.
        words = {"whole": self.whole, "directory": FOLDER}
        if not any(os.environ.get(r) for r in RANKS):
            words["argv"] = COMMAND
        try:
            self.profile.add_metadata_json("warpscope", json.dumps(words))
        except (AttributeError, RuntimeError):
            pass

    def stop(self, why):
        if os.getpid() != self.owner or self.state != "tracing":
            return
        self.state = "writing"
        traced = time.monotonic() - self.began
        # Half a trace is of no use to anybody: what would end the program waits until it is written.
        interrupt = signal.signal(signal.SIGINT, self.ended) if threading.current_thread() is MAIN else None
        say("writing the trace, which may take a while")
        # Beside the place, then moved: a trace that is there is whole.
        folder, name = os.path.split(self.path)
        part = os.path.join(folder, ".%d.%s" % (os.getpid(), name))
        try:
            os.makedirs(folder, exist_ok=True)
            self.profile.stop()
            self.profile.export_chrome_trace(part)
            os.replace(part, self.path)
            say("%s, %.1f s traced, ended %s" % (self.path, traced, why))
        except Exception as error:
            say("no trace: %s: %s" % (type(error).__name__, error))
        finally:
            self.profile = None
            self.state = "done"
            try:
                os.unlink(part)
            except OSError:
                pass
            if interrupt is not None:
                signal.signal(signal.SIGINT, interrupt)
            if self.waits is not None:
                if self.waits != signal.SIGINT:
                    signal.signal(self.waits, signal.SIG_DFL)
                os.kill(os.getpid(), self.waits)

    def ended(self, number, _frame):
        if self.state == "writing":
            self.waits = number
            return
        self.stop("by signal %d" % number)
        # As without a handler: the parent sees a program that the signal ended.
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)


class Watch:
    """Says when the program has imported torch. Importing it earlier would fix what the program sets in the environment before."""

    def __init__(self, tracer):
        self.tracer = tracer

    def find_spec(self, name, path=None, target=None):
        if name != "torch":
            return None
        from importlib.util import find_spec

        sys.meta_path.remove(self)
        spec = find_spec("torch")
        loader = getattr(spec, "loader", None)
        if loader is None or not hasattr(loader, "exec_module"):
            return spec
        run = loader.exec_module

        def exec_module(module):
            run(module)
            self.tracer.torch_is_there()

        loader.exec_module = exec_module
        return spec


def take(arguments):
    options = {"--seconds": None, "--after": "0", "--trace": None}
    while arguments and arguments[0] in options:
        option = arguments.pop(0)
        options[option] = arguments.pop(0) if arguments else None
    if None in options.values() or not arguments or (arguments[0] == "-m" and len(arguments) < 2):
        say("usage: %s --seconds N [--after N] --trace FILE (SCRIPT | -m MODULE) ARGUMENTS..." % HERE)
        sys.exit(2)
    rank = next((os.environ[r] for r in RANKS if os.environ.get(r)), "0")
    path = os.path.abspath(options["--trace"].replace("{rank}", rank))
    words = getattr(sys, "orig_argv", [sys.executable])
    python = next((i for i, word in enumerate(words) if os.path.abspath(word) == HERE), 1)
    COMMAND.extend(words[:python] + arguments)
    return Tracer(path, float(options["--seconds"]), float(options["--after"])), arguments


def without_us(trace):
    """The traceback as the program alone would leave it."""
    while trace is not None and os.path.abspath(trace.tb_frame.f_code.co_filename) == HERE:
        trace = trace.tb_next
    return trace


def program(arguments):
    """Runs the program in a fresh __main__, so that pickling, multiprocessing and its own names find what they expect."""
    # Ours stays reachable under another name: threads and handlers still need it.
    sys.modules["_warpscope_trace"] = sys.modules["__main__"]
    main = types.ModuleType("__main__")
    main.__dict__["__builtins__"] = __builtins__
    sys.modules["__main__"] = main
    if arguments[0] == "-m":
        import runpy

        sys.argv = ["-m"] + arguments[2:]
        return lambda: runpy._run_module_as_main(arguments[1])
    script = arguments[0]
    sys.argv = arguments
    import zipfile

    if os.path.isdir(script) or (os.path.isfile(script) and zipfile.is_zipfile(script)):
        import runpy

        return lambda: runpy._run_module_as_main("__main__", alter_argv=False)
    try:
        with open(script, "rb") as file:
            text = file.read()
    except OSError as error:
        # Python says its name as it was called.
        name = getattr(sys, "orig_argv", [sys.executable])[0]
        sys.stderr.write("%s: can't open file %r: [Errno %d] %s\n" % (name, os.path.abspath(script), error.errno, error.strerror))
        sys.exit(2)
    main.__file__ = os.path.abspath(script) if sys.version_info >= (3, 9) else script
    main.__cached__ = None
    from importlib.machinery import SourceFileLoader

    main.__loader__ = SourceFileLoader("__main__", main.__file__)
    return lambda: exec(compile(text, main.__file__, "exec", dont_inherit=True), main.__dict__)


def path_of(arguments):
    """sys.path as Python sets it: the script's folder or, for -m, the current one, in the place of ours."""
    if getattr(sys.flags, "safe_path", False) or sys.flags.isolated:
        return
    if arguments[0] == "-m":
        sys.path[0] = os.getcwd()
    elif os.path.isdir(arguments[0]):
        sys.path[0] = os.path.abspath(arguments[0])
    else:
        sys.path[0] = os.path.dirname(os.path.realpath(arguments[0]))


def run():
    tracer, arguments = take(sys.argv[1:])
    path_of(arguments)
    from importlib.util import find_spec

    if find_spec("torch") is None:
        say("%s has no torch: install it there, or name the Python that has it" % sys.executable)
        sys.exit(NO_TORCH)
    sys.meta_path.insert(0, Watch(tracer))
    start = program(arguments)
    how = "with the program"
    try:
        start()
    except SystemExit:
        raise
    except BaseException as error:
        how = "by " + type(error).__name__
        show = sys.excepthook

        def shown(kind, value, trace):
            trace = without_us(trace)
            show(kind, value.with_traceback(trace), trace)

        sys.excepthook = shown
        raise
    finally:
        tracer.stop(how)
        if tracer.owner == os.getpid() and tracer.state in ("waiting", "ready"):
            say("no trace: " + ("the program did not import torch" if tracer.state == "waiting" else "the program ended before --after"))
            tracer.state = "done"


if __name__ == "__main__":
    run()
