/* SPDX-License-Identifier: MIT */
/* cli/cmd/torch_version.c - see doctor.h. */
#include "cli/cmd/doctor.h"

#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/lines.h"
#include "cli/front/locate.h"
#include "kit/kernel_files.h"

enum { FILE_BYTES = 4096 };

/* ---- the program ---- */

/* Find `name` as the shell would. */
static bool search_path(const char *name, char *to, size_t size)
{
    char *found = tmk_locate_on_path(name);
    if (found)
        snprintf(to, size, "%s", found);
    free(found);
    return found != NULL;
}

static bool in_environment(const char *variable, char *to, size_t size)
{
    const char *prefix = getenv(variable);
    if (!prefix || *prefix != '/')
        return false;
    snprintf(to, size, "%s/bin/python", prefix);
    return access(to, X_OK) == 0;
}

static bool find_python(const char *named, char *to, size_t size)
{
    if (named && strchr(named, '/'))
        return snprintf(to, size, "%s", named) < (int)size && access(to, X_OK) == 0;
    if (named)
        return search_path(named, to, size);
    return in_environment("VIRTUAL_ENV", to, size) || in_environment("CONDA_PREFIX", to, size) ||
           search_path("python3", to, size) || search_path("python", to, size);
}

/* pyenv's programs are scripts that start the program of the version chosen: go there. */
static void see_through_shim(char *python, size_t size)
{
    char version[64], real[PATH_MAX];
    const char *shims = strstr(python, "/shims/"), *chosen = getenv("PYENV_VERSION");
    if (!shims)
        return;
    int n_root = (int)(shims - python);
    if (chosen && *chosen)
        snprintf(version, sizeof version, "%.60s", chosen);
    else if (tmk_kernel_file_read(version, sizeof version, "%.*s/version", n_root, python) <= 0)
        return;
    version[strcspn(version, ":\n")] = '\0';
    int n = snprintf(real, sizeof real, "%.*s/versions/%s/bin/python3", n_root, python, version);
    if (n < (int)sizeof real && (size_t)n < size && access(real, X_OK) == 0)
        memcpy(python, real, (size_t)n + 1);
}

/* Cut the last two parts of a path: /usr/bin/python3 belongs to /usr. */
static void cut_to_prefix(char *path)
{
    for (int i = 0; i < 2; i++) {
        char *slash = strrchr(path, '/');
        if (slash)
            *slash = '\0';
    }
}

/* ---- the file ---- */

/* Write "python3.11" where the links of the program end in such a name, else "python3*". */
static void library_name(const char *python, char *to, size_t size)
{
    char *real = realpath(python, NULL);
    const char *slash = real ? strrchr(real, '/') : NULL;
    bool known = slash && strncmp(slash, "/python3.", 9) == 0;
    snprintf(to, size, "%.30s", known ? slash + 1 : "python3*");
    free(real);
}

static bool read_first(const char *pattern, char *text)
{
    glob_t found;
    bool good = glob(pattern, 0, NULL, &found) == 0 && found.gl_pathc > 0 &&
                tmk_kernel_file_read(text, FILE_BYTES, "%s", found.gl_pathv[0]) > 0;
    globfree(&found);
    return good;
}

/* Read torch's version below a prefix, from where Python looks for packages, in its order. The last
 * place is Debian's own, for all versions. */
static bool read_below(const char *prefix, const char *library, char *text)
{
    const char *const places[][3] = {
        {"lib", library, "site-packages"},
        {"lib64", library, "site-packages"},
        {"local/lib", library, "dist-packages"},
        {"lib", "python3", "dist-packages"},
    };
    char pattern[PATH_MAX];
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        snprintf(pattern, sizeof pattern, "%s/%s/%s/%s/torch/version.py", prefix, places[i][0],
                 places[i][1], places[i][2]);
        if (read_first(pattern, text))
            return true;
    }
    return false;
}

static bool read_of_user(const char *library, char *text)
{
    char pattern[PATH_MAX];
    const char *home = getenv("HOME");
    snprintf(pattern, sizeof pattern, "%s/.local/lib/%s/site-packages/torch/version.py",
             home ? home : "", library);
    return home && read_first(pattern, text);
}

/* Find the Python below a virtual environment, if that one uses its packages. pyvenv.cfg says both.
 */
static bool base_of_environment(const char *text, char *to, size_t size)
{
    const char *home = tmk_lines_field(text, "home =");
    if (!*home || strncmp(tmk_lines_field(text, "include-system-site-packages ="), "true", 4) != 0)
        return false;
    snprintf(to, size, "%.*s/python", (int)strcspn(home, "\n"), home);
    cut_to_prefix(to);
    return true;
}

static bool read_version_file(const char *python, char *text)
{
    char prefix[PATH_MAX], base[PATH_MAX], library[32], settings[FILE_BYTES];
    snprintf(prefix, sizeof prefix, "%s", python);
    cut_to_prefix(prefix);
    library_name(python, library, sizeof library);
    if (read_below(prefix, library, text))
        return true;
    if (tmk_kernel_file_read(settings, sizeof settings, "%s/pyvenv.cfg", prefix) > 0)
        return base_of_environment(settings, base, sizeof base) && read_below(base, library, text);
    return read_of_user(library, text);
}

/* Take the text in quotes on the line of `name`, such as "cuda: Optional[str] = '13.0'"; "" for
 * None. */
static void take_version_text(const char *text, const char *name, char *to, size_t size)
{
    const char *line = tmk_lines_field(text, name);
    size_t n = strcspn(line, "\n");
    const char *equals = memchr(line, '=', n);
    const char *quote = equals ? equals + 1 + strspn(equals + 1, " ") : "";
    to[0] = '\0';
    if (*quote == '\'' || *quote == '"')
        snprintf(to, size, "%.*s", (int)strcspn(quote + 1, "'\"\n"), quote + 1);
}

/* Take torch's version for the program ret->python. */
static bool read_torch(struct tmk_torch_version *ret)
{
    char text[FILE_BYTES];
    if (!read_version_file(ret->python, text))
        return false;
    take_version_text(text, "__version__", ret->version, sizeof ret->version);
    take_version_text(text, "cuda", ret->cuda, sizeof ret->cuda);
    take_version_text(text, "hip", ret->hip, sizeof ret->hip);
    return ret->version[0] != '\0';
}

bool tmk_torch_version_find(const char *python, struct tmk_torch_version *ret)
{
    memset(ret, 0, sizeof *ret);
    if (!find_python(python, ret->python, sizeof ret->python)) {
        ret->python[0] = '\0';
        return false;
    }
    see_through_shim(ret->python, sizeof ret->python);
    return read_torch(ret);
}

bool tmk_torch_version_search(struct tmk_torch_version *ret)
{
    const char *path = getenv("PATH");
    for (size_t n; path && *path; path += n + (path[n] == ':')) {
        n = strcspn(path, ":");
        memset(ret, 0, sizeof *ret);
        snprintf(ret->python, sizeof ret->python, "%.*s/python3", (int)n, path);
        if (n == 0 || access(ret->python, X_OK) < 0)
            continue;
        see_through_shim(ret->python, sizeof ret->python);
        if (read_torch(ret))
            return true;
    }
    return false;
}

/* Take the number behind "3." when there is one. */
static int minor_of(const char *version)
{
    return strncmp(version, "3.", 2) == 0 && version[2] >= '0' && version[2] <= '9'
               ? (int)strtol(version + 2, NULL, 10)
               : -1;
}

int tmk_python_minor(const char *python)
{
    char name[32], prefix[PATH_MAX], settings[FILE_BYTES];
    library_name(python, name, sizeof name);
    int minor = minor_of(name + strlen("python"));
    if (minor >= 0)
        return minor;
    snprintf(prefix, sizeof prefix, "%s", python);
    cut_to_prefix(prefix);
    if (tmk_kernel_file_read(settings, sizeof settings, "%s/pyvenv.cfg", prefix) <= 0)
        return -1;
    const char *version = tmk_lines_field(settings, "version =");
    return minor_of(*version ? version : tmk_lines_field(settings, "version_info ="));
}
