/* SPDX-License-Identifier: MIT */
/* base/glibc_compat.h - binds to old glibc symbols, so that a new machine builds for old ones.
 *
 * Nobody includes this file: meson.build puts it in front of every source (-include). A program
 * linked on a new glibc asks for the newest version of each symbol and then does not start on an
 * older one. tools/check_symbols holds the package to GLIBC_2.34 for the tools and GLIBC_2.28 for
 * libtidemark.so, which goes into processes in containers we did not choose. What gets in the way:
 *
 *   2.38  strtol, scanf and kin become __isoc23_* under _GNU_SOURCE: switched off, for all code.
 *   2.34  libpthread and libdl moved into libc, and their functions got a new version there; the
 *   2.32  old version of each is still exported, and .symver asks for that one. On a glibc before
 *         2.34 the function lies in libpthread.so.0 or libdl.so.2, so libtidemark.so names both
 *         as needed (meson.build); the loader looks a symbol up by name and version, whatever
 *         library it was linked against, and newer systems keep both files as empty shells.
 *   2.33  stat and kin were inline before and have no old version: system calls here, whose
 *         struct stat is glibc's own on x86-64 and aarch64.
 *   2.30  gettid: a system call too.
 *
 * The last three are for TMK_OLD_GLIBC only: base, trace and record. Not under a sanitizer, which
 * must see the names it intercepts. A file that *defines* one of these names (a hook) must be
 * built without. Functions not listed are caught by the check: add the line it asks for, with the
 * version that `readelf --dyn-syms` shows with a single @ in libc.so.6. Weak aliases or dlvsym at
 * run time would do too, but cost a pointer and a failure path for each function. */
#ifndef TMK_BASE_GLIBC_COMPAT_H
#define TMK_BASE_GLIBC_COMPAT_H
#ifndef __ASSEMBLER__

#include <features.h>

#undef __GLIBC_USE_C2X_STRTOL
#define __GLIBC_USE_C2X_STRTOL 0
#undef __GLIBC_USE_C23_STRTOL
#define __GLIBC_USE_C23_STRTOL 0

#ifdef TMK_OLD_GLIBC

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define TMK_OLD(name, version) __asm__(".symver " #name "," #name "@GLIBC_" version)
#elif defined(__aarch64__) /* everything older than the port has the port's version */
#define TMK_OLD(name, version) __asm__(".symver " #name "," #name "@GLIBC_2.17")
#else
#error "x86-64 and aarch64 only: which version has a symbol on this machine?"
#endif

/* libdl */
TMK_OLD(dladdr, "2.2.5");
TMK_OLD(dladdr1, "2.3.3");
TMK_OLD(dlclose, "2.2.5");
TMK_OLD(dlerror, "2.2.5");
TMK_OLD(dlinfo, "2.3.3");
TMK_OLD(dlopen, "2.2.5");
TMK_OLD(dlsym, "2.2.5");
TMK_OLD(dlvsym, "2.2.5");

/* libpthread: threads and their attributes */
TMK_OLD(pthread_attr_getguardsize, "2.2.5");
TMK_OLD(pthread_attr_getstack, "2.2.5");
TMK_OLD(pthread_attr_getstacksize, "2.2.5");
TMK_OLD(pthread_attr_setguardsize, "2.2.5");
TMK_OLD(pthread_attr_setstack, "2.2.5");
TMK_OLD(pthread_attr_setstacksize, "2.2.5");
TMK_OLD(pthread_cancel, "2.2.5");
TMK_OLD(pthread_create, "2.2.5");
TMK_OLD(pthread_detach, "2.2.5");
TMK_OLD(pthread_getaffinity_np, "2.3.4");
TMK_OLD(pthread_getattr_np, "2.2.5");
TMK_OLD(pthread_getname_np, "2.12");
TMK_OLD(pthread_join, "2.2.5");
TMK_OLD(pthread_kill, "2.2.5");
TMK_OLD(pthread_setaffinity_np, "2.3.4");
TMK_OLD(pthread_setname_np, "2.12");
TMK_OLD(pthread_sigmask, "2.2.5");
TMK_OLD(pthread_timedjoin_np, "2.3.3");
TMK_OLD(pthread_tryjoin_np, "2.3.3");

/* libpthread: keys, locks, semaphores (mutex_lock, cond_wait and the like were always in libc) */
TMK_OLD(pthread_condattr_setclock, "2.3.3");
TMK_OLD(pthread_getspecific, "2.2.5");
TMK_OLD(pthread_key_create, "2.2.5");
TMK_OLD(pthread_key_delete, "2.2.5");
TMK_OLD(pthread_mutex_consistent, "2.12");
TMK_OLD(pthread_mutex_timedlock, "2.2.5");
TMK_OLD(pthread_mutex_trylock, "2.2.5");
TMK_OLD(pthread_mutexattr_destroy, "2.2.5");
TMK_OLD(pthread_mutexattr_init, "2.2.5");
TMK_OLD(pthread_mutexattr_setpshared, "2.2.5");
TMK_OLD(pthread_mutexattr_setrobust, "2.12");
TMK_OLD(pthread_mutexattr_settype, "2.2.5");
TMK_OLD(pthread_once, "2.2.5");
TMK_OLD(pthread_rwlock_rdlock, "2.2.5");
TMK_OLD(pthread_rwlock_unlock, "2.2.5");
TMK_OLD(pthread_rwlock_wrlock, "2.2.5");
TMK_OLD(pthread_setspecific, "2.2.5");
TMK_OLD(sem_destroy, "2.2.5");
TMK_OLD(sem_init, "2.2.5");
TMK_OLD(sem_post, "2.2.5");
TMK_OLD(sem_timedwait, "2.2.5");
TMK_OLD(sem_trywait, "2.2.5");
TMK_OLD(sem_wait, "2.2.5");

#define stat(path, ret_st) ((int)syscall(SYS_newfstatat, AT_FDCWD, path, ret_st, 0))
#define lstat(path, ret_st)                                                                        \
    ((int)syscall(SYS_newfstatat, AT_FDCWD, path, ret_st, AT_SYMLINK_NOFOLLOW))
#define fstat(fd, ret_st) ((int)syscall(SYS_fstat, fd, ret_st))
#define fstatat(fd, path, ret_st, flags) ((int)syscall(SYS_newfstatat, fd, path, ret_st, flags))
#define gettid() ((pid_t)syscall(SYS_gettid))

#endif
#endif
#endif
