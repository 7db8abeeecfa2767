/* SPDX-License-Identifier: MIT */
/* cli/run/nothing.c - says why a program left no trace. It looks for causes that can be seen and
 * names them. Without one the program simply reported nothing, which is the common case and no
 * fault. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "cli/front/locate.h"
#include "cli/front/refused.h"
#include "cli/output/say.h"
#include "cli/output/xalloc.h"
#include "cli/run/summary.h"
#include "cli/run/watch.h"
#include "kit/amount.h"
#include "trace/layout.h"

enum { LEAST_TRACE_BYTES = 2 * TMK_HEADER_MAX_BYTES };

/* ---- the disk ---- */

/* Returns the nearest folder above `path` that exists; the caller's. */
static char *existing_folder(const char *path)
{
    char *folder = tmk_xstrdup(path);
    struct stat st;
    for (char *slash; stat(folder, &st) < 0 && (slash = strrchr(folder, '/')) != NULL;)
        slash[slash == folder] = '\0';
    return folder;
}

static bool explain_disk(const char *run_folder)
{
    char *folder = existing_folder(run_folder);
    struct statvfs fs;
    bool said = true;
    if (access(folder, W_OK | X_OK) < 0)
        tmk_say("nothing was recorded: %s cannot be written to (%s)", folder, strerror(errno));
    else if (statvfs(folder, &fs) == 0 && (uint64_t)fs.f_bavail * fs.f_frsize < LEAST_TRACE_BYTES)
        tmk_say("nothing was recorded: the disk of %s is full", folder);
    else
        said = false;
    free(folder);
    return said;
}

static bool explain_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) < 0 || limit.rlim_cur >= LEAST_TRACE_BYTES)
        return false;
    char size[TMK_AMOUNT_BYTES];
    tmk_say("nothing was recorded: files may not grow beyond %s here; see: ulimit -f",
            tmk_size_text((uint64_t)limit.rlim_cur, size));
    return true;
}

/* ---- the program ---- */

enum linkage { NOT_ELF, STATIC, DYNAMIC };

static enum linkage linkage_of(int fd)
{
    Elf64_Ehdr header;
    if (pread(fd, &header, sizeof header, 0) != (ssize_t)sizeof header ||
        memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64)
        return NOT_ELF;
    for (unsigned i = 0; i < header.e_phnum; i++) {
        Elf64_Phdr part;
        off_t at = (off_t)(header.e_phoff + (uint64_t)i * header.e_phentsize);
        if (pread(fd, &part, sizeof part, at) != (ssize_t)sizeof part)
            break;
        if (part.p_type == PT_INTERP)
            return DYNAMIC;
    }
    return STATIC;
}

static bool is_python_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    return strncmp(name, "python", 6) == 0 || strncmp(name, "ipython", 7) == 0;
}

/* Returns whether a script's first line names Python. */
static bool has_python_line(const char *path)
{
    char line[256] = "";
    FILE *f = fopen(path, "re");
    if (!f)
        return false;
    bool is_script = fgets(line, sizeof line, f) && strncmp(line, "#!", 2) == 0;
    fclose(f);
    return is_script && strstr(line, "python");
}

/* Python without a library that allocates what we watch: it has nothing to do with tidemark.h. */
static bool explain_python(const char *name)
{
    char *path = tmk_locate_on_path(name);
    const char *slash = strrchr(name, '/');
    bool is_python = is_python_name(name) || (path && has_python_line(path));
    free(path);
    if (!is_python)
        return false;
    tmk_say("nothing was recorded: %s allocated nothing that tidemark watches: no torch tensor, no "
            "JAX or CuPy array, no CUDA memory",
            slash ? slash + 1 : name);
    tmk_say("does this Python have torch? To see: %s -c 'import torch'",
            is_python_name(name) ? name : "python3");
    return true;
}

static bool explain_program(const char *name)
{
    char *path = tmk_locate_on_path(name);
    struct stat st;
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    bool said = false;
    if (fd >= 0 && linkage_of(fd) == STATIC) {
        tmk_say("nothing was recorded: %s is statically linked, so nothing can be loaded into it",
                path);
        said = true;
    } else if (path && stat(path, &st) == 0 && (st.st_mode & (S_ISUID | S_ISGID)) != 0) {
        tmk_say("nothing was recorded: %s is setuid or setgid, so nothing may be loaded into it",
                path);
        said = true;
    }
    if (fd >= 0)
        close(fd);
    free(path);
    return said;
}

/* Explain an empty folder. It was made for the first event, so something kept the process from
 * writing into it. */
static bool explain_folder(const struct tmk_watch *w)
{
    struct stat st;
    if (w->folder_was_there || lstat(w->folder, &st) < 0 || !S_ISDIR(st.st_mode))
        return false;
    tmk_say("nothing was recorded: the program reported allocations, but could not make a trace, "
            "nor say why");
    tmk_say("its limits may be too low: open files (ulimit -n), file size (ulimit -f)");
    return true;
}

static void say_nothing_refused(void *arg, const char *text)
{
    (void)arg;
    tmk_say("nothing was recorded: %s", text);
}

void tmk_summary_nothing(const struct tmk_watch *w, bool has_recorded)
{
    if (explain_disk(w->folder) || tmk_refused_each(w->folder, NULL, say_nothing_refused, NULL) > 0)
        return;
    if (has_recorded) {
        tmk_say("nothing is left of the recording: %s was removed or moved away while the program "
                "ran",
                w->folder);
        return;
    }
    if (explain_limit() || explain_program(w->argv[0]) || explain_folder(w) ||
        explain_python(w->argv[0]))
        return;
    tmk_say("nothing was recorded: %s reported no allocation", w->argv[0]);
    tmk_say("programs report theirs with tidemark.h; to see one that does: tidemark demo");
}
