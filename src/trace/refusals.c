/* SPDX-License-Identifier: MIT */
/* trace/refusals.c - see refusals.h. */
#include "trace/refusals.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "trace/stops.h"

enum {
    PATH_BYTES = 3584,
    LINE_BYTES = 160,
    PIECE_BYTES = 4096,
    LINE_NUMBERS = 3,
    MOST_DIGITS = 10
};

void tmk_refusals_path(const char *folder, bool is_inside, struct tmk_text *out)
{
    tmk_text_add(out, "%s%crefused", folder, is_inside ? '/' : '.');
}

/* ---- the file's owner ---- */

struct line_scan { /* where in a line we are */
    unsigned n_numbers, n_digits;
};

static bool scan_byte(struct line_scan *s, char c)
{
    if (s->n_numbers == LINE_NUMBERS) { /* in its text */
        if (c == '\n')
            *s = (struct line_scan){0};
        return c == '\n' || (unsigned char)c >= ' ';
    }
    if (c >= '0' && c <= '9')
        return ++s->n_digits <= MOST_DIGITS;
    if (c != ' ' || s->n_digits == 0)
        return false;
    s->n_numbers++;
    s->n_digits = 0;
    return true;
}

/* Whether all lines of the file have this format; the file is then read to its end. The last line
 * may have been cut by a full disk. */
static bool are_lines(int fd, size_t *ret_bytes)
{
    char piece[PIECE_BYTES];
    struct line_scan s = {0};
    size_t n_bytes = 0;
    for (ssize_t got; (got = read(fd, piece, sizeof piece)) > 0;) {
        n_bytes += (size_t)got;
        for (ssize_t i = 0; i < got; i++)
            if (!scan_byte(&s, piece[i]))
                return false;
        if (n_bytes > TMK_REFUSALS_MAX_BYTES)
            return false;
    }
    *ret_bytes = n_bytes;
    return true;
}

/* Whether the file is such a list, neither the user's own file nor another one that is linked to
 * this name. */
static bool is_list(int fd, size_t *ret_bytes)
{
    struct stat st;
    return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_nlink == 1 &&
           are_lines(fd, ret_bytes);
}

/* ---- writing ---- */

static int open_to_append(const char *folder, bool is_inside)
{
    char name[PATH_BYTES];
    struct tmk_text path;
    tmk_text_init(&path, name, sizeof name);
    tmk_refusals_path(folder, is_inside, &path);
    if (path.cut) {
        errno = ENAMETOOLONG;
        return -1;
    }
    return open(name, O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
}

static bool has_disk_room(int fd, size_t n_bytes)
{
    size_t n_before;
    return is_list(fd, &n_before) && n_before + n_bytes <= TMK_REFUSALS_MAX_BYTES;
}

/* Whether writing could end the program with SIGXFSZ. */
static bool is_size_limited(void)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) < 0 || limit.rlim_cur < TMK_REFUSALS_MAX_BYTES;
}

int tmk_refusals_append(const char *folder, const struct tmk_refusal *refusal)
{
    char line[LINE_BYTES];
    struct tmk_text text;
    tmk_text_init(&text, line, sizeof line);
    tmk_text_add(&text, "%u %u %d %s\n", (unsigned)refusal->pid, (unsigned)refusal->reason,
                 refusal->os_error, tmk_stop_text(refusal->reason));
    if (is_size_limited())
        return TMK_EFULL;
    int fd = open_to_append(folder, true);
    if (fd < 0 && errno == ENOENT)
        fd = open_to_append(folder, false);
    if (fd < 0)
        return TMK_EIO;
    bool is_written =
        has_disk_room(fd, text.length) && write(fd, line, text.length) == (ssize_t)text.length;
    close(fd);
    return is_written ? 0 : TMK_EFULL;
}

/* ---- reading ---- */

/* Reads the digits at *text and moves *text behind them and one blank. Returns false when there are
 * none. */
static bool take_refusal_number(const char **text, uint32_t *ret)
{
    const char *at = *text;
    uint64_t value = 0;
    for (; *at >= '0' && *at <= '9' && value <= UINT32_MAX; at++)
        value = value * 10 + (uint64_t)(*at - '0');
    if (at == *text || *at != ' ' || value > INT32_MAX)
        return false;
    *text = at + 1;
    *ret = (uint32_t)value;
    return true;
}

static bool parse_line(const char *line, struct tmk_refusal *ret)
{
    uint32_t pid, reason, os_error;
    if (!take_refusal_number(&line, &pid) || !take_refusal_number(&line, &reason) ||
        !take_refusal_number(&line, &os_error))
        return false;
    *ret = (struct tmk_refusal){
        .pid = pid, .reason = (enum tmk_stop)reason, .os_error = (int)os_error};
    return true;
}

static int open_to_read(const char *folder, bool is_inside)
{
    char name[PATH_BYTES];
    struct tmk_text path;
    struct stat st;
    tmk_text_init(&path, name, sizeof name);
    tmk_refusals_path(folder, is_inside, &path);
    int fd = path.cut ? -1 : open(name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd >= 0 && (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))) {
        close(fd);
        return -1;
    }
    return fd;
}

bool tmk_refusals_are_own(const char *folder, bool is_inside)
{
    struct stat st;
    size_t n_bytes = 0;
    int fd = open_to_read(folder, is_inside);
    bool are_own = fd >= 0 && fstat(fd, &st) == 0 && (st.st_uid == geteuid() || geteuid() == 0) &&
                   is_list(fd, &n_bytes);
    if (fd >= 0)
        close(fd);
    return are_own && n_bytes > 0;
}

static size_t read_refusal_file(int fd, struct tmk_refusal *ret, size_t most)
{
    static char text[TMK_REFUSALS_MAX_BYTES + 1];
    size_t length = 0, n = 0;
    for (ssize_t got;
         length < sizeof text - 1 && (got = read(fd, text + length, sizeof text - 1 - length)) > 0;)
        length += (size_t)got;
    text[length] = '\0';
    for (char *line = text, *end; n < most && (end = strchr(line, '\n')) != NULL; line = end + 1) {
        *end = '\0';
        n += parse_line(line, &ret[n]);
    }
    return n;
}

size_t tmk_refusals_read(const char *folder, struct tmk_refusal *ret, size_t most)
{
    size_t n = 0, n_bytes;
    for (int is_inside = 1; is_inside >= 0; is_inside--) {
        int fd = open_to_read(folder, is_inside);
        if (fd < 0)
            continue;
        if (is_inside || (is_list(fd, &n_bytes) && lseek(fd, 0, SEEK_SET) == 0))
            n += read_refusal_file(fd, ret + n, most - n);
        close(fd);
    }
    return n;
}
