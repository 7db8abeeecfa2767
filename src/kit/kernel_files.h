/* SPDX-License-Identifier: MIT */
/* kit/kernel_files.h - small text files of the kernel, and the "NAME: value" lines in them. */
#ifndef TMK_KIT_KERNEL_FILES_H
#define TMK_KIT_KERNEL_FILES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Reads a file with one read() and adds a zero byte: all of the file where it fits. `format` and
 * its arguments make the path. Returns the length, or -1 with errno when the file cannot be read;
 * `to` is then "". */
ssize_t tmk_kernel_file_read(char *to, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Reads when a process started, in ticks since the machine started; 0: that cannot be read. `proc`:
 * where /proc is. */
uint64_t tmk_process_start_ticks(const char *proc, pid_t pid);

/* Reads the numbers at the start of a line, at most `room`; returns how many there are. */
unsigned tmk_kernel_numbers(const char *text, long *to, unsigned room);

#endif
