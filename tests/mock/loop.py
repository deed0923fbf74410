"""Loops whose guilty function is known, for the mock driver: `loop.py KIND SECONDS`, with the folder of the mocks in
MOCK_FOLDER. Each step launches a few kernels and then spends its time in one function."""

import ctypes
import json
import os
import queue
import sys
import threading
import time

folder = os.environ["MOCK_FOLDER"]
cupti = ctypes.CDLL(os.path.join(folder, "libcupti.so.13"), mode=ctypes.RTLD_GLOBAL)
cuda = ctypes.CDLL(os.path.join(folder, "libcuda.so.1"), mode=ctypes.RTLD_GLOBAL)
tracer = ctypes.CDLL(os.environ["CUDA_INJECTION64_PATH"])
tracer.InitializeInjection()

text = json.dumps([{"a": i, "b": [i] * 8} for i in range(200)])


def until(seconds):
    """A moment from now, on the clock of the loops below."""
    return time.monotonic() + seconds


def collate(end):
    total = 0
    while time.monotonic() < end:
        total += sum(i * i for i in range(50))
    return total


def parse(end):
    while time.monotonic() < end:
        json.loads(text)


class Tokens:
    def detokenize(self, end, depth=20):
        if depth:
            return self.detokenize(end, depth - 1)
        while time.monotonic() < end:
            "".join(reversed("token" * 50))


def read_file(end):
    r, w = os.pipe()
    threading.Thread(target=lambda: (time.sleep(max(0, end - time.monotonic())), os.write(w, b"x"), os.close(w))).start()
    os.read(r, 1)
    os.close(r)


def take_batch(end):
    batches = queue.Queue()
    threading.Thread(target=lambda: (time.sleep(max(0, end - time.monotonic())), batches.put(1))).start()
    batches.get()


def sleep_between(end):
    time.sleep(max(0, end - time.monotonic()))


def größe(end):
    while time.monotonic() < end:
        pow(3, 5000)


def read_token(end):
    time.sleep(max(0, end - time.monotonic()))


def hog():
    """Holds the interpreter lock on another thread."""
    while True:
        sorted(range(2000), key=lambda i: -i)


todo, done = queue.Queue(), queue.Queue()


def launch_for_others():
    """Launches on another thread, as the threads of autograd do."""
    while True:
        first = todo.get()
        for k in range(4):
            cuda.cuLaunch(first + k, 7)
        done.put(1)


def prepare(end):
    while time.monotonic() < end:
        sum(i * i for i in range(50))


def hand_over(end):
    prepare(end)
    todo.put(1000000)
    done.get()


KINDS = {
    "relay": hand_over,
    "compute": collate,
    "parse": parse,
    "deep": Tokens().detokenize,
    "read": read_file,
    "queue": take_batch,
    "sleep": sleep_between,
    "wide": größe,
    "graph": read_token,
    "lock": None,
}


def attention(node):
    cuda.cuGraphCapture(node)


def mlp(node):
    cuda.cuGraphCapture(node)


def capture():
    for layer in range(2):
        attention(2 * layer)
        mlp(2 * layer + 1)
    cuda.cuGraphInstantiate(4)


def step(i, work):
    if work is read_token:
        cuda.cuGraph(4)
    else:
        for k in range(4):
            cuda.cuLaunch(4 * i + k, 7)
    if work:
        work(until(0.02))
    else:
        for _ in range(20):
            time.sleep(0)


def main(kind, seconds):
    if kind == "lock":
        threading.Thread(target=hog, daemon=True).start()
    if kind == "relay":
        threading.Thread(target=launch_for_others, daemon=True).start()
    if kind == "graph":
        capture()
    work, end, i = KINDS[kind], until(seconds), 0
    while time.monotonic() < end:
        step(i, work)
        i += 1
    print(i, flush=True)
    os._exit(0) if kind == "lock" else None


main(sys.argv[1], float(sys.argv[2]))
