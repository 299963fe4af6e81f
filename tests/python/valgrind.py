"""Runs valgrind with a program that reads its auxiliary vector: `valgrind.py ARGUMENT...`.

Since Linux 6.4 a process gets this vector from a system call that valgrind 3.19 does not adapt: the
vector then names code of the kernel that is not mapped. The call is refused here, so that the
program reads the file that earlier kernels have, which valgrind adapts. For x86-64.
"""

import ctypes
import errno
import os
import struct
import sys

PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, PR_GET_AUXV = 22, 38, 0x41555856
SECCOMP_MODE_FILTER, SECCOMP_RET_ERRNO, SECCOMP_RET_ALLOW = 2, 0x00050000, 0x7FFF0000
SYS_PRCTL, NUMBER_OFFSET, ARGUMENT_OFFSET = 157, 0, 16
LOAD, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06

# Operation, instructions to skip if equal and if not, operand.
filter = [
    (LOAD, 0, 0, NUMBER_OFFSET),
    (JUMP_IF_EQUAL, 0, 3, SYS_PRCTL),
    (LOAD, 0, 0, ARGUMENT_OFFSET),
    (JUMP_IF_EQUAL, 0, 1, PR_GET_AUXV),
    (RETURN, 0, 0, SECCOMP_RET_ERRNO | errno.EINVAL),
    (RETURN, 0, 0, SECCOMP_RET_ALLOW),
]
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in filter))
program = struct.pack("HxxxxxxP", len(filter), ctypes.addressof(code))
prctl = ctypes.CDLL(None).prctl
assert prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
assert prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, program, 0, 0) == 0
os.execvp("valgrind", ["valgrind", *sys.argv[1:]])
