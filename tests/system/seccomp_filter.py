"""seccomp_filter.py - system calls refused to a child by a filter of the kernel's, as containers do.

    subprocess.run(..., preexec_fn=seccomp_filter.refuse(*seccomp_filter.IO_URING))"""
import ctypes
import errno
import platform
import struct
import sys

IO_URING = (425, 426, 427)  # setup, enter, register: the same numbers on every architecture
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, MODE_FILTER = 38, 22, 2
LOAD, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, ERRNO = 0x7fff0000, 0x00050000


def is_known():
    return sys.platform == "linux" and platform.machine() in ("x86_64", "aarch64")


def refuse(*numbers, error=errno.EPERM):
    """A preexec_fn after which these calls fail."""
    rows = [(LOAD, 0, 0, 0)]  # the number of the call
    for i, number in enumerate(numbers):
        rows.append((JUMP_IF_EQUAL, len(numbers) - i, 0, number))
    rows += [(RETURN, 0, 0, ALLOW), (RETURN, 0, 0, ERRNO | error)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *r) for r in rows))
    program = ctypes.create_string_buffer(
        struct.pack("HxxxxxxP", len(rows), ctypes.addressof(code)))
    libc = ctypes.CDLL(None, use_errno=True)

    def install():
        zero = ctypes.c_ulong(0)
        if libc.prctl(PR_SET_NO_NEW_PRIVS, ctypes.c_ulong(1), zero, zero, zero) or \
                libc.prctl(PR_SET_SECCOMP, ctypes.c_ulong(MODE_FILTER), program, zero, zero):
            raise OSError(ctypes.get_errno(), "no filter")
        return code  # which the kernel has copied by now

    return install
