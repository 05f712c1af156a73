"""What Python and the machine take, without any framework."""
import os
import threading
import zlib

from timing import nanoseconds, tell


def lines():
    def block():
        total = 0
        for it in range(10_000):
            total = total + it
        return total

    tell("a line of Python", nanoseconds(block, 10_000, 100))


def calls():
    def called(it):
        return it

    def block():
        for it in range(10_000):
            called(it)

    tell("a call of a Python function", nanoseconds(block, 10_000, 100))


def switches(cost, cores):
    """A byte goes to another process and back: two switches where both share a core, two wake-ups where not."""
    to_child, to_parent = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        os.sched_setaffinity(0, {cores[0]})
        while os.read(to_child[0], 1) == b"x":
            os.write(to_parent[1], b"x")
        os._exit(0)
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {cores[1]})

    def block():
        for _ in range(200):
            os.write(to_child[1], b"x")
            os.read(to_parent[0], 1)

    tell(cost, nanoseconds(block, 400, 100))
    os.sched_setaffinity(0, before)
    os.write(to_child[1], b"e")
    os.waitpid(child, 0)


def lock():
    """A thread that computes without Python's lock for a moment, over and over, while another runs Python or not."""
    over = False
    text = bytes(1 << 20)

    def other():
        while not over:
            sum(range(1000))

    def block():
        for _ in range(10):
            zlib.crc32(text)

    alone = nanoseconds(block, 10, 40)
    thread = threading.Thread(target=other)
    thread.start()
    taken = nanoseconds(block, 10, 40)
    over = True
    thread.join()
    tell("a short call that lets go of Python's lock", alone)
    tell("the same while another thread runs Python", taken)


cores = sorted(os.sched_getaffinity(0))
lines()
calls()
switches("a switch between two threads on one core", (cores[0], cores[0]))
if len(cores) > 1:
    switches("waking a thread on another core", (cores[0], cores[1]))
lock()
