//! Restricts the system calls of a child process.
//!
//! Problem: a bug of the compiler or of the shell could let untrusted input execute code of its own
//! in the child.
//!
//! Guarantee: such code can compute, use memory within the limits and answer through its pipes. It
//! cannot reach files, sockets, other programs or other processes.
//!
//! Supported processors are x86-64 and ARM64. On others the child has only its resource limits.

use std::io;

/// Restricts the calling thread and the threads that it starts to the system calls for reading,
/// computing and answering. Every other call fails with `EPERM`. The restriction cannot be undone.
///
/// # Errors
/// Fails if the kernel refuses the restriction.
#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
pub fn restrict() -> io::Result<()> {
    // This also prevents the thread from gaining privileges, which the kernel requires.
    seccompiler::apply_filter(&filter_program().map_err(io::Error::other)?)
        .map_err(io::Error::other)
}

#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
fn filter_program() -> Result<seccompiler::BpfProgram, seccompiler::BackendError> {
    use seccompiler::{SeccompAction, SeccompFilter};

    let process = u64::from(std::process::id());
    let mut rules: std::collections::BTreeMap<_, _> = ALLOWED_CALLS
        .iter()
        .map(|call| (*call, Vec::new()))
        .collect();
    // A process that aborts sends a signal to itself.
    rules.extend([
        (libc::SYS_tgkill, first_argument_is(process)?),
        (libc::SYS_tkill, first_argument_is(process)?),
    ]);
    rules.insert(libc::SYS_prlimit64, first_argument_is(0)?);
    let refuse = SeccompAction::Errno(libc::EPERM as u32);
    SeccompFilter::new(
        rules,
        refuse,
        SeccompAction::Allow,
        std::env::consts::ARCH.try_into()?,
    )?
    .try_into()
}

#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
fn first_argument_is(
    value: u64,
) -> Result<Vec<seccompiler::SeccompRule>, seccompiler::BackendError> {
    use seccompiler::{SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompRule};

    let condition = SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, value)?;
    Ok(vec![SeccompRule::new(vec![condition])?])
}

#[cfg(not(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
)))]
#[expect(clippy::unnecessary_wraps, reason = "the one above can fail")]
pub fn restrict() -> io::Result<()> {
    Ok(())
}

/// System calls that are allowed with any arguments.
#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
const ALLOWED_CALLS: &[libc::c_long] = &[
    // Open pipes.
    libc::SYS_read,
    libc::SYS_readv,
    libc::SYS_write,
    libc::SYS_writev,
    libc::SYS_close,
    libc::SYS_fcntl,
    libc::SYS_fstat,
    libc::SYS_lseek,
    libc::SYS_ppoll,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_poll,
    // Memory.
    libc::SYS_brk,
    libc::SYS_madvise,
    libc::SYS_membarrier,
    libc::SYS_mmap,
    libc::SYS_mprotect,
    libc::SYS_mremap,
    libc::SYS_munmap,
    // Threads, time and randomness.
    libc::SYS_clock_getres,
    libc::SYS_clock_gettime,
    libc::SYS_clock_nanosleep,
    libc::SYS_futex,
    libc::SYS_getpid,
    libc::SYS_getrandom,
    libc::SYS_getrusage,
    libc::SYS_gettid,
    libc::SYS_gettimeofday,
    libc::SYS_nanosleep,
    libc::SYS_restart_syscall,
    libc::SYS_rseq,
    libc::SYS_sched_getaffinity,
    libc::SYS_sched_yield,
    libc::SYS_set_robust_list,
    libc::SYS_sysinfo,
    libc::SYS_uname,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_arch_prctl,
    // Signals and exit.
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sigaltstack,
];

#[cfg(all(
    test,
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
mod tests {
    use std::{
        fs::File, io::ErrorKind, net::TcpListener, os::unix::net::UnixStream, process::Command,
        thread,
    };

    use super::*;

    #[test]
    fn restricted_thread_reaches_no_socket_file_or_program() {
        let tried = thread::spawn(|| {
            restrict().unwrap();
            let computed: usize = (0..1000).map(|size| vec![1u8; size].len()).sum();
            let refused = [
                TcpListener::bind("127.0.0.1:0").map(drop),
                UnixStream::pair().map(drop),
                File::open("/proc/self/status").map(drop),
                File::create("/tmp/never").map(drop),
                Command::new("/bin/true").spawn().map(drop),
                thread::Builder::new().spawn(|| {}).map(drop),
            ];
            (
                computed,
                refused.map(|tried| tried.map_err(|cause| cause.kind())),
            )
        });
        let (computed, refused) = tried.join().unwrap();
        assert_eq!(computed, 499_500);
        assert_eq!(refused, [Err(ErrorKind::PermissionDenied); 6]);
    }
}
