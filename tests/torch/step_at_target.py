"""Called by test_step_at.py: reports blocks through the hook that torch would call."""
import sys
import time

from frames_site import site


def work(n):
    for _ in range(n):
        site(10)


def waits_for_recorder():
    """It looks at Python when the first blocks have been made."""
    for _ in range(30):
        site(2)
        time.sleep(0.01)


def in_a_function():
    for _ in range(7):
        work(3)  # in a function


def batches():
    for _ in range(5):
        site(3)
        yield 4  # in a generator


class Failing:
    def __init__(self):
        self.n = 0

    def step(self):
        self.n += 1
        work(2)  # that raises
        if self.n == 6:
            raise ValueError


waits_for_recorder()
if sys.argv[1] == "in a function":
    in_a_function()
elif sys.argv[1] == "in a generator":
    for size in batches():
        site(size)
elif sys.argv[1] == "that raises":
    try:
        failing = Failing()
        while True:
            failing.step()
    except ValueError:
        site(9)
else:
    for _ in range(4):
        [site(5) for _ in range(2)]  # of the module, in a loop that runs already
