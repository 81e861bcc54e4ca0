"""Memory for clients, the same for all of a comparison.

Hypervisors take back the free memory of their guests (free page reporting). The first touch of such a page then costs
whoever comes next up to four seconds for each GB, or none, by chance: more than everything that is to be measured.
"""

import contextlib
import mmap
import pathlib
import subprocess
import sys

# Linux 5.14 (madvise(2)): gives every page of a mapping its memory. Python has no name for it yet.
MADV_POPULATE_WRITE = 23
LEFT_FREE = 1 << 30
CGROUP = pathlib.Path("/sys/fs/cgroup")


def at_hand(nbytes: int) -> None:
    """Takes so much free memory from the hypervisor and gives it to the system, which hands it out again first; to be
    called just before it is needed, since the hypervisor comes back for it after two seconds. What is in use and what is
    cached of files stays where it is. A process of its own does it, so that the peak of this one stays what it is. Where it
    cannot be done, chance decides.
    """
    size = min(nbytes, free() - LEFT_FREE)
    if size > 0:
        subprocess.run([sys.executable, "-S", __file__, str(size)], stderr=subprocess.DEVNULL)


def touch(size: int) -> None:
    with mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as mapping:
        for advice in (mmap.MADV_HUGEPAGE, MADV_POPULATE_WRITE):
            with contextlib.suppress(OSError):  # a kernel without it
                mapping.madvise(advice)


def free() -> int:
    """Bytes that nobody uses, not even for files, and that this process may have."""
    lines = pathlib.Path("/proc/meminfo").read_text().splitlines()
    (kilobytes,) = [line.split()[1] for line in lines if line.startswith("MemFree:")]
    found = int(kilobytes) * 1024
    with contextlib.suppress(OSError, ValueError):  # no limit, or another kind of control group
        limit, used = (int((CGROUP / f"memory.{name}").read_text()) for name in ("max", "current"))
        found = min(found, limit - used)
    return found


if __name__ == "__main__":
    touch(int(sys.argv[1]))
